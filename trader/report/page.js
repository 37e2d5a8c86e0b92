"use strict";
/* The page is complete without this. It adds the readout of the charts, opens what a link points to,
   and opens or closes all debates. */
(() => {
  const store = document.getElementById("chart-data");
  const data = JSON.parse(store.textContent);
  const figures = [...document.querySelectorAll("figure[data-series]")];

  const written = (value, places, unit) =>
    value === null ? "n/a" : value.toLocaleString("en-US", {
      minimumFractionDigits: places, maximumFractionDigits: places,
    }).replace("-", "\u2212") + unit;

  const show = (index) => {
    const last = data.times.length - 1;
    for (const figure of figures) {
      const readout = figure.querySelector(".readout");
      const cross = figure.querySelector(".cross");
      readout.dataset.rest ??= readout.textContent;
      cross.hidden = index === null;
      if (index === null) {
        readout.textContent = readout.dataset.rest;
        continue;
      }
      const name = figure.dataset.series;
      const [places, unit] = name === "equity" ? [data.places, ""] : [2, " %"];
      cross.style.left = last ? `${(100 * index) / last}%` : "50%";
      readout.textContent = [data.times[index], ...data.columns.map((column) =>
        `${column.label} ${written(column[name][index], places, unit)}`)].join(" \u00b7 ");
    }
  };

  for (const figure of figures) {
    const plot = figure.querySelector(".plot");
    const last = data.times.length - 1;
    let at = last;
    plot.tabIndex = 0;
    plot.setAttribute("role", "group");
    plot.setAttribute("aria-label", `${figure.dataset.series} chart, arrow keys read it out`);
    plot.addEventListener("pointermove", (event) => {
      const box = plot.getBoundingClientRect();
      const share = (event.clientX - box.left) / box.width;
      at = Math.max(0, Math.min(last, Math.round(share * last)));
      show(at);
    });
    plot.addEventListener("pointerleave", () => show(null));
    plot.addEventListener("blur", () => show(null));
    plot.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20 }[event.key];
      if (step === undefined) return;
      event.preventDefault();
      at = Math.max(0, Math.min(last, at + step));
      show(at);
    });
  }

  const target = (hash) => document.getElementById(decodeURIComponent(hash.slice(1)));
  const reveal = (element) => {
    if (element === null) return;
    const debate = element.closest("details.debate");
    if (debate !== null && debate.offsetParent === null) document.getElementById("show-all").checked = true;
    for (let node = element.closest("details"); node; node = node.parentElement.closest("details")) {
      node.open = true;
    }
  };
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]');
    if (link !== null) reveal(target(link.getAttribute("href")));
  });
  const arrive = () => {
    if (location.hash.length < 2) return;
    const element = target(location.hash);
    reveal(element);
    if (element !== null) element.scrollIntoView();
  };
  addEventListener("hashchange", arrive);

  const filter = document.querySelector(".filter");
  if (filter !== null && document.querySelector("details.debate") !== null) {
    for (const [words, open] of [["Open all", true], ["Close all", false]]) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = words;
      button.addEventListener("click", () => {
        for (const debate of document.querySelectorAll("details.debate")) debate.open = open;
      });
      filter.append(button);
    }
  }
  arrive();
  document.documentElement.dataset.ready = "yes";
})();
