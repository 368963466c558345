//! Colours and letters, for light and for dark surroundings.
//!
//! Lines have the colours of Okabe and Ito, which colour-blind readers can tell apart, a little
//! lighter on dark ground, and each its own dashes as well. Numbers on the heat map go from pale to
//! strong in one hue.

/// How many lines have a style of their own.
pub(super) const LINES: usize = 5;

/// How many steps the heat map has.
pub(super) const HEATS: usize = 6;

/// For everything that is drawn.
pub(super) const STYLE: &str = "\
:root{color-scheme:light dark;--paper:#fff;--page:#f4f5f7;--ink:#1b2026;--muted:#59636e;\
--grid:#e7eaed;--axis:#9aa4ae;--shade:#f3ecd8;--down:#d9dde1;\
--c0:#0072b2;--c1:#d55e00;--c2:#009e73;--c3:#a8508a;--c4:#c98a00;\
--h1:#cfe3f3;--h2:#9fc8e6;--h3:#68a6d3;--h4:#3580b8;--h5:#145a96;--h6:#062f5c}\
@media(prefers-color-scheme:dark){:root{--paper:#171b21;--page:#0e1115;--ink:#e9edf1;\
--muted:#a0abb7;--grid:#2a313a;--axis:#5f6b78;--shade:#33301f;--down:#3a424c;\
--c0:#56b4e9;--c1:#f58a3c;--c2:#2cc79b;--c3:#e59ccb;--c4:#f0c94a;\
--h1:#17405f;--h2:#1f5e8c;--h3:#2f80b8;--h4:#56a6da;--h5:#97cdf0;--h6:#e4f4ff}}\
text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;\
font-size:12px;fill:var(--muted);font-variant-numeric:tabular-nums}\
.huge{font-size:24px;font-weight:650;fill:var(--ink)}\
.big{font-size:19px;font-weight:650;fill:var(--ink)}\
.title{font-size:15px;font-weight:650;fill:var(--ink)}\
.name{fill:var(--ink)}.value{fill:var(--ink);font-weight:650;paint-order:stroke;stroke:var(--paper);stroke-width:4px}\
.paper{fill:var(--paper)}.page{fill:var(--page)}\
.grid{stroke:var(--grid)}.axis{stroke:var(--axis)}\
.shade{fill:var(--shade)}.down{fill:var(--down)}\
.mark{stroke:var(--ink);stroke-width:1.2}\
.leader{stroke:var(--axis);fill:none}\
.tip{fill:var(--ink);fill-opacity:0}.tip:hover{fill-opacity:.07}\
.band{fill:var(--c0);fill-opacity:.16}\
.l{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}\
.l0{stroke:var(--c0)}.l1{stroke:var(--c1);stroke-dasharray:8 4}\
.l2{stroke:var(--c2);stroke-dasharray:2 4}.l3{stroke:var(--c3);stroke-dasharray:9 4 2 4}\
.l4{stroke:var(--c4);stroke-dasharray:14 3}\
.b0{fill:var(--c0)}.b1{fill:var(--c1)}.b2{fill:var(--c2)}.b3{fill:var(--c3)}.b4{fill:var(--c4)}\
.h1{fill:var(--h1)}.h2{fill:var(--h2)}.h3{fill:var(--h3)}\
.h4{fill:var(--h4)}.h5{fill:var(--h5)}.h6{fill:var(--h6)}";
