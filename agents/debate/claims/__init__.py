"""The claims checker: quoted numbers are held against evidence, the past and their sentence."""
