//! Lines over an axis.

use super::{
    panel::{Frame, Panel, Swatch, apart},
    scale::Axis,
    style::LINES,
    svg::{Anchor, width_of},
};

/// A picture of lines.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Lines {
    pub(super) title: &'static str,
    pub(super) about: String,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) series: Vec<Series>,
    /// Fills what is between the first two lines.
    pub(super) has_band: bool,
    /// When something was done, and what.
    pub(super) shades: Vec<(f64, f64)>,
    pub(super) notes: Vec<String>,
    /// What shows when a stretch is pointed at.
    pub(super) tips: Vec<(f64, f64, String)>,
    pub(super) names: Names,
}

/// Where the names of lines stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    /// At their ends.
    Direct,
    /// Above, in a key.
    Key,
}

/// One line; more than one stretch where there was nothing in between.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) stretches: Vec<Vec<(f64, f64)>>,
}

impl Series {
    /// Of points, some of which do not exist.
    pub(super) fn new(name: String, points: impl Iterator<Item = (f64, Option<f64>)>) -> Self {
        let mut stretches = vec![Vec::new()];
        for (x, y) in points {
            match (y, stretches.last_mut()) {
                (Some(y), Some(stretch)) => stretch.push((x, y)),
                (_, Some(stretch)) if stretch.is_empty() => {}
                (_, _) => stretches.push(Vec::new()),
            }
        }
        stretches.retain(|stretch| !stretch.is_empty());
        Self { name, stretches }
    }

    fn last(&self) -> Option<(f64, f64)> {
        self.stretches.last()?.last().copied()
    }
}

impl Lines {
    pub(super) fn draw(self, width: f64, height: f64) -> Panel {
        let mut panel = Panel::new(self.title, &self.about, width);
        let shades = self.notes.iter();
        let mut items: Vec<_> = shades
            .map(|note| (Swatch::Box("shade"), note.clone()))
            .collect();
        let right = match self.names {
            Names::Direct => {
                let names = self.series.iter().map(|one| width_of(&one.name, 12.0));
                names.fold(0.0, f64::max) + 26.0
            }
            Names::Key => {
                let lines = self.series.iter().enumerate();
                items.extend(lines.map(|(style, one)| (Swatch::Line(style), one.name.clone())));
                14.0
            }
        };
        panel.key(&items);
        let frame = Frame::new(&mut panel, height, right, self.x, self.y);
        let svg = &mut panel.svg;
        frame.draw(svg, &self.shades);
        if let (true, [upper, lower, ..]) = (self.has_band, &self.series[..]) {
            for (upper, lower) in upper.stretches.iter().zip(&lower.stretches) {
                let around = upper.iter().chain(lower.iter().rev());
                let points: Vec<_> = around.map(|&(x, y)| (frame.x(x), frame.y(y))).collect();
                svg.polygon("band", &points);
            }
        }
        // The first line is the most important: it is drawn last.
        for (style, one) in self.series.iter().enumerate().rev() {
            let class = format!("l l{}", style % LINES);
            for stretch in &one.stretches {
                let points = without_doubles(stretch);
                let points: Vec<_> = points
                    .iter()
                    .map(|&(x, y)| (frame.x(x), frame.y(y)))
                    .collect();
                svg.polyline(&class, &points, &one.name);
            }
        }
        match self.names {
            Names::Direct => name_ends(&mut panel, &frame, &self.series),
            Names::Key => {}
        }
        for (from, until, tip) in &self.tips {
            let (from, until) = (frame.x(*from), frame.x(*until));
            let size = (until - from, frame.height);
            panel.svg.rect("tip", (from, frame.top), size, tip);
        }
        panel.done()
    }
}

fn name_ends(panel: &mut Panel, frame: &Frame, series: &[Series]) {
    let ends: Vec<_> = series.iter().map(Series::last).collect();
    let ys: Vec<f64> = ends
        .iter()
        .map(|end| end.map_or(frame.bottom(), |(_, y)| frame.y(y)))
        .collect();
    let mut places = ys.clone();
    apart(&mut places, 15.0, frame.bottom());
    for (style, one) in series.iter().enumerate() {
        let (from, to) = (
            (frame.right(), ys[style]),
            (frame.right() + 12.0, places[style]),
        );
        panel.svg.line(&format!("l l{}", style % LINES), from, to);
        let at = (to.0 + 6.0, to.1 + 4.0);
        panel.svg.text("name", at, Anchor::Start, &one.name);
    }
}

/// Without points in the middle of level stretches.
fn without_doubles(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let is_needed = |index: usize| {
        let level = |other: Option<&(f64, f64)>| other.is_some_and(|one| one.1 == points[index].1);
        let before = index.checked_sub(1).and_then(|index| points.get(index));
        !(level(before) && level(points.get(index + 1)))
    };
    let indices = (0..points.len()).filter(|&index| is_needed(index));
    indices.map(|index| points[index]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn level_stretches_keep_their_ends() {
        let points = [(0.0, 1.0), (1.0, 1.0), (2.0, 1.0), (3.0, 5.0), (4.0, 1.0)];
        let kept = without_doubles(&points);
        assert_eq!(kept, [(0.0, 1.0), (2.0, 1.0), (3.0, 5.0), (4.0, 1.0)]);
    }

    #[test]
    fn where_there_is_nothing_a_line_is_broken() {
        let points = [
            (0.0, None),
            (1.0, Some(3.0)),
            (2.0, None),
            (3.0, None),
            (4.0, Some(2.0)),
        ];
        let series = Series::new(String::new(), points.into_iter());
        assert_eq!(series.stretches, [[(1.0, 3.0)], [(4.0, 2.0)]]);
    }
}
