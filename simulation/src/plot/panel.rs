//! What all pictures have in common: a heading, a key, and a frame with axes.

use super::{
    scale::Axis,
    svg::{Anchor, Svg, width_of, wrap},
};

/// One picture.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Panel {
    pub(super) title: String,
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) svg: Svg,
    /// Where the next thing goes, from the top.
    pub(super) at: f64,
}

impl Panel {
    /// With a heading, and under it what is shown.
    pub(super) fn new(title: &str, about: &str, width: f64) -> Self {
        let mut panel = Self {
            title: title.to_owned(),
            width,
            height: 0.0,
            svg: Svg::default(),
            at: 0.0,
        };
        for line in wrap(title, 15.0, width) {
            panel.at += 19.0;
            let at = (0.0, panel.at - 3.0);
            panel.svg.text("title", at, Anchor::Start, &line);
        }
        panel.paragraph(about);
        panel.at += 6.0;
        panel
    }

    pub(super) fn paragraph(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        for line in wrap(text, 12.0, self.width) {
            self.at += 16.0;
            let at = (0.0, self.at - 3.0);
            self.svg.text("", at, Anchor::Start, &line);
        }
    }

    /// What colours and dashes mean.
    pub(super) fn key(&mut self, items: &[(Swatch, String)]) {
        let mut x = 0.0;
        let mut y = self.at + 12.0;
        for (swatch, name) in items {
            let lines = wrap(name, 12.0, self.width - 30.0);
            let longest = lines.iter().map(|line| width_of(line, 12.0));
            let needed = longest.fold(0.0, f64::max) + 46.0;
            if x > 0.0 && x + needed - 18.0 > self.width {
                x = 0.0;
                y += 18.0;
            }
            swatch.draw(&mut self.svg, (x, y));
            for (index, line) in lines.iter().enumerate() {
                y += if index > 0 { 16.0 } else { 0.0 };
                let at = (x + 28.0, y + 4.0);
                self.svg.text("name", at, Anchor::Start, line);
            }
            x += needed;
        }
        if !items.is_empty() {
            self.at = y + 12.0;
        }
    }

    /// Everything is drawn.
    pub(super) fn done(mut self) -> Self {
        self.height = self.at + 4.0;
        self
    }
}

/// A sample in a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Swatch {
    Line(usize),
    Box(&'static str),
}

impl Swatch {
    fn draw(self, svg: &mut Svg, (x, y): (f64, f64)) {
        match self {
            Self::Line(style) => {
                svg.line(&format!("l l{style}"), (x + 1.0, y), (x + 21.0, y));
            }
            Self::Box(class) => svg.rect(class, (x + 4.0, y - 6.0), (16.0, 12.0), ""),
        }
    }
}

/// The area that values are drawn in.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) x: Axis,
    pub(super) y: Axis,
    /// The right end of the panel.
    outer: f64,
}

impl Frame {
    /// Below what the panel has so far, with so much room on the right.
    pub(super) fn new(panel: &mut Panel, height: f64, right: f64, x: Axis, y: Axis) -> Self {
        let names = y.ticks.iter().map(|(_, name)| width_of(name, 12.0));
        let left = names.fold(0.0, f64::max) + 10.0;
        let frame = Self {
            left,
            top: panel.at + 28.0,
            width: panel.width - left - right,
            height,
            x,
            y,
            outer: panel.width,
        };
        panel.at = frame.top + height + 40.0;
        frame
    }

    pub(super) fn x(&self, value: f64) -> f64 {
        self.left + self.x.share(value) * self.width
    }

    pub(super) fn y(&self, value: f64) -> f64 {
        self.top + (1.0 - self.y.share(value)) * self.height
    }

    pub(super) fn right(&self) -> f64 {
        self.left + self.width
    }

    pub(super) fn bottom(&self) -> f64 {
        self.top + self.height
    }

    /// Bands from top to bottom, then lines and names of the axes.
    pub(super) fn draw(&self, svg: &mut Svg, shades: &[(f64, f64)]) {
        for &(from, until) in shades {
            let (from, until) = (self.x(from), self.x(until));
            svg.rect("shade", (from, self.top), (until - from, self.height), "");
        }
        for (value, name) in &self.y.ticks {
            let y = self.y(*value);
            svg.line("grid", (self.left, y), (self.right(), y));
            svg.text("", (self.left - 7.0, y + 4.0), Anchor::End, name);
        }
        svg.text("", (0.0, self.top - 12.0), Anchor::Start, self.y.title);
        self.draw_x(svg);
    }

    /// The lower axis alone.
    pub(super) fn draw_x(&self, svg: &mut Svg) {
        let bottom = self.bottom();
        svg.line("axis", (self.left, bottom), (self.right(), bottom));
        let mut free_from = f64::MIN;
        for (value, name) in &self.x.ticks {
            let (x, half) = (self.x(*value), width_of(name, 12.0) / 2.0);
            if x - half < free_from {
                continue;
            }
            free_from = x + half + 8.0;
            svg.line("axis", (x, bottom), (x, bottom + 4.0));
            match x + half > self.outer {
                true => svg.text("", (self.outer, bottom + 18.0), Anchor::End, name),
                false => svg.text("", (x, bottom + 18.0), Anchor::Middle, name),
            }
        }
        let at = (self.right(), bottom + 34.0);
        svg.text("", at, Anchor::End, self.x.title);
    }
}

/// Moves places apart that are nearer than `apart`, in their order, and keeps them above `end`.
pub(super) fn apart(places: &mut [f64], apart: f64, end: f64) {
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by(|&one, &other| places[one].total_cmp(&places[other]));
    let mut free_from = f64::MIN;
    for &index in &order {
        places[index] = places[index].max(free_from);
        free_from = places[index] + apart;
    }
    let mut free_until = end;
    for &index in order.iter().rev() {
        places[index] = places[index].min(free_until);
        free_until = places[index] - apart;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_keep_their_order_and_do_not_touch() {
        let mut places = [50.0, 52.0, 51.0, 10.0];
        apart(&mut places, 14.0, 70.0);
        assert_eq!(places, [42.0, 70.0, 56.0, 10.0]);
    }
}
