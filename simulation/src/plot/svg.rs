//! SVG as text. All geometry is in pixels, all numbers have one decimal at most.

use std::fmt::{self, Write as _};

/// A piece of SVG.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Svg(String);

/// Where a text stands relative to its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Puts another piece here, moved.
    pub(super) fn place(&mut self, x: f64, y: f64, piece: &Svg) {
        let (x, y) = (Number(x), Number(y));
        self.put(format_args!(
            "<g transform=\"translate({x} {y})\">{}</g>\n",
            piece.0
        ));
    }

    pub(super) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let (x1, y1) = (Number(from.0), Number(from.1));
        let (x2, y2) = (Number(to.0), Number(to.1));
        self.put(format_args!(
            "<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>\n"
        ));
    }

    /// A rectangle; with a text that shows when it is pointed at, unless that is empty.
    pub(super) fn rect(&mut self, class: &str, corner: (f64, f64), size: (f64, f64), tip: &str) {
        let (x, y) = (Number(corner.0), Number(corner.1));
        let (width, height) = (Number(size.0.max(0.0)), Number(size.1.max(0.0)));
        self.put(format_args!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\""
        ));
        match tip.is_empty() {
            true => self.put(format_args!("/>\n")),
            false => self.put(format_args!("><title>{}</title></rect>\n", Escaped(tip))),
        }
    }

    pub(super) fn polyline(&mut self, class: &str, points: &[(f64, f64)], tip: &str) {
        let (points, tip) = (Points(points), Escaped(tip));
        self.put(format_args!(
            "<polyline class=\"{class}\" points=\"{points}\"><title>{tip}</title></polyline>\n"
        ));
    }

    pub(super) fn polygon(&mut self, class: &str, points: &[(f64, f64)]) {
        let points = Points(points);
        self.put(format_args!(
            "<polygon class=\"{class}\" points=\"{points}\"/>\n"
        ));
    }

    /// Many rectangles of one colour, each given by its corner and size.
    pub(super) fn rects(&mut self, class: &str, all: &[(f64, f64, f64, f64)]) {
        if all.is_empty() {
            return;
        }
        self.put(format_args!("<path class=\"{class}\" d=\""));
        for &(x, y, width, height) in all {
            let (x, y) = (Number(x), Number(y));
            let (width, height) = (Number(width), Number(height));
            self.put(format_args!("M{x} {y}h{width}v{height}h-{width}z"));
        }
        self.put(format_args!("\"/>\n"));
    }

    pub(super) fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        let (x, y, text) = (Number(at.0), Number(at.1), Escaped(text));
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        self.put(format_args!(
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\"{anchor}>{text}</text>\n"
        ));
    }

    fn put(&mut self, arguments: fmt::Arguments<'_>) {
        // Writing to a `String` cannot fail.
        let _ = self.0.write_fmt(arguments);
    }
}

/// A text within XML or HTML, attributes included.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|letter| match letter {
            '&' => f.write_str("&amp;"),
            '<' => f.write_str("&lt;"),
            '>' => f.write_str("&gt;"),
            '"' => f.write_str("&quot;"),
            other => f.write_char(other),
        })
    }
}

/// With one decimal, or none where that is zero.
pub(super) struct Number(pub(super) f64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = (self.0 * 10.0).round();
        match tenths % 10.0 == 0.0 {
            // Adding zero makes a zero of a minus zero.
            true => write!(f, "{}", tenths / 10.0 + 0.0),
            false => write!(f, "{:.1}", tenths / 10.0),
        }
    }
}

struct Points<'a>(&'a [(f64, f64)]);

impl fmt::Display for Points<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, &(x, y)) in self.0.iter().enumerate() {
            let space = if index == 0 { "" } else { " " };
            write!(f, "{space}{},{}", Number(x), Number(y))?;
        }
        Ok(())
    }
}

/// About how wide a text is, at this size of letters.
pub(super) fn width_of(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * 0.54
}

/// A text in lines of at most about this width.
pub(super) fn wrap(text: &str, size: f64, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if width_of(&format!("{line} {word}"), size) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) | None => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_one_decimal_at_most() {
        let text = |number| Number(number).to_string();
        assert_eq!(text(12.0), "12");
        assert_eq!(text(12.34), "12.3");
        assert_eq!(text(-0.04), "0");
        assert_eq!(text(0.96), "1");
        assert_eq!(text(-1.25), "-1.3");
    }

    #[test]
    fn what_means_something_in_xml_is_escaped() {
        assert_eq!(
            Escaped("a < b & \"c\" > d").to_string(),
            "a &lt; b &amp; &quot;c&quot; &gt; d"
        );
    }

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrap("one two three", 10.0, 40.0), ["one two", "three"]);
        assert_eq!(wrap("unbreakable", 10.0, 5.0), ["unbreakable"]);
    }
}
