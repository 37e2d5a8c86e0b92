"use strict";
/* The page is complete without this. It reads a cell of the heat map out, by pointer and by arrow keys. */
(() => {
  const store = document.getElementById("heat-data");
  const figure = document.querySelector("figure.heat");
  if (store === null || figure === null) return;
  const data = JSON.parse(store.textContent);
  const cells = figure.querySelector(".cells");
  const readout = figure.querySelector(".readout");
  const rest = readout.textContent;
  const rows = data.best.length;
  const columns = data.best[0].length;
  const spot = document.createElement("span");
  spot.className = "spot";
  spot.hidden = true;
  cells.append(spot);

  const score = (value) => {
    if (value === null) return "n/a";
    const [shown, places, unit] = data.fraction ? [100 * value, 1, " %"]
      : [value, Math.abs(value) >= 1000 ? 0 : 2, ""];
    return shown.toLocaleString("en-US", { minimumFractionDigits: places, maximumFractionDigits: places })
      .replace("-", "\u2212") + unit;
  };
  const range = (ends) => (ends[0] === ends[1] ? `${ends[0]}` : `${ends[0]}\u2013${ends[1]}`);

  let at = null;
  const show = (place) => {
    at = place;
    spot.hidden = place === null;
    if (place === null) {
      readout.textContent = rest;
      return;
    }
    const [row, column] = place;
    spot.style.left = `${(100 * column) / columns}%`;
    spot.style.top = `${(100 * (rows - row - 1)) / rows}%`;
    spot.style.width = `${100 / columns}%`;
    spot.style.height = `${100 / rows}%`;
    const words = [`${data.columnName} ${range(data.columns[column])}`];
    if (data.rowName !== null) words.unshift(`${data.rowName} ${range(data.rows[row])}`);
    const count = data.count[row][column];
    if (count === 0) words.push("no set");
    else if (count === 1) words.push(score(data.best[row][column]));
    else words.push(`best ${score(data.best[row][column])}`, `mean ${score(data.mean[row][column])}`,
      `${count.toLocaleString("en-US")} sets`);
    readout.textContent = words.join(" \u00b7 ");
  };

  cells.tabIndex = 0;
  cells.setAttribute("role", "group");
  cells.setAttribute("aria-label", "heat map, arrow keys read it out");
  const within = (value, count) => Math.max(0, Math.min(count - 1, value));
  cells.addEventListener("pointermove", (event) => {
    const box = cells.getBoundingClientRect();
    const column = within(Math.floor(((event.clientX - box.left) / box.width) * columns), columns);
    const below = within(Math.floor(((event.clientY - box.top) / box.height) * rows), rows);
    show([rows - below - 1, column]);
  });
  cells.addEventListener("pointerleave", () => show(null));
  cells.addEventListener("blur", () => show(null));
  cells.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [1, 0], ArrowDown: [-1, 0] }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const [row, column] = at ?? [0, 0];
    show([within(row + step[0], rows), within(column + step[1], columns)]);
  });
})();
