//! Panels in order, and all of them on one sheet.

use super::{
    panel::Panel,
    style::STYLE,
    svg::{Anchor, Escaped, Number, Svg, wrap},
};

/// Panels under a heading.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Section {
    pub(super) title: String,
    pub(super) rows: Vec<Row>,
}

/// One panel, or two that stand side by side where there is room.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Row {
    One(Panel),
    Two(Panel, Panel),
}

impl Row {
    pub(super) fn panels(&self) -> Vec<&Panel> {
        match self {
            Self::One(panel) => vec![panel],
            Self::Two(left, right) => vec![left, right],
        }
    }
}

/// One picture with everything in it.
pub(super) fn sheet(
    title: &str,
    about: &str,
    facts: &[(String, String)],
    sections: &[Section],
) -> String {
    let mut svg = Svg::default();
    let mut y = MARGIN;
    svg.text("huge", (MARGIN, y + 20.0), Anchor::Start, title);
    y += 36.0;
    for line in wrap(about, 12.0, WIDE) {
        svg.text("", (MARGIN, y + 12.0), Anchor::Start, &line);
        y += 17.0;
    }
    y += 14.0;
    let step = WIDE / facts.len().max(1) as f64;
    for (index, (name, value)) in facts.iter().enumerate() {
        let x = MARGIN + index as f64 * step;
        svg.text("big", (x, y + 18.0), Anchor::Start, value);
        svg.text("", (x, y + 36.0), Anchor::Start, name);
    }
    y += if facts.is_empty() { 0.0 } else { 64.0 };
    for section in sections {
        if !section.title.is_empty() {
            y += 22.0;
            svg.line("axis", (MARGIN, y - 18.0), (MARGIN + WIDE, y - 18.0));
            svg.text("big", (MARGIN, y + 10.0), Anchor::Start, &section.title);
            y += 34.0;
        }
        for row in &section.rows {
            let panels = row.panels();
            for (index, panel) in panels.iter().enumerate() {
                svg.place(MARGIN + index as f64 * (HALF + GAP), y, &panel.svg);
            }
            y += panels.iter().map(|panel| panel.height).fold(0.0, f64::max) + 26.0;
        }
    }
    let (width, height) = (Number(WIDE + 2.0 * MARGIN), Number(y + 4.0));
    let (title, style, body) = (Escaped(title), STYLE, svg.as_str());
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\">\n<title>{title}</title>\n<style>{style}</style>\n\
         <rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>\n{body}</svg>\n"
    )
}

/// The width of everything on a wide screen.
pub(super) const WIDE: f64 = 1_160.0;
/// Of each of two panels there.
pub(super) const HALF: f64 = (WIDE - GAP) / 2.0;
/// Of everything on a phone.
pub(super) const NARROW: f64 = 340.0;
const GAP: f64 = 40.0;
const MARGIN: f64 = 32.0;
