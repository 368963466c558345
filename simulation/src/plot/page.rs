//! A page of HTML that needs nothing else: no script, no font, no other file.

use super::{
    sheet::{Row, Section},
    style::STYLE,
    svg::{Escaped, Number},
};
use std::fmt::Write as _;

/// What a page shows. Sections are given twice: for wide screens and for narrow ones.
pub(super) struct Page<'a> {
    pub(super) title: &'a str,
    pub(super) about: &'a str,
    pub(super) facts: &'a [(String, String)],
    pub(super) wide: &'a [Section],
    pub(super) narrow: &'a [Section],
    pub(super) tables: &'a [Table],
    /// The command that makes this page.
    pub(super) command: &'a str,
}

/// Numbers for those who want to read them after all.
pub(super) struct Table {
    pub(super) title: String,
    pub(super) heads: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

impl Page<'_> {
    pub(super) fn html(&self) -> String {
        let mut html = String::new();
        let (title, about) = (Escaped(self.title), Escaped(self.about));
        // Writing to a `String` cannot fail.
        let _ = write!(
            html,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
             <title>{title}</title>\n<style>{STYLE}{LAYOUT}</style>\n</head>\n<body>\n<main>\n\
             <h1>{title}</h1>\n<p>{about}</p>\n"
        );
        if !self.facts.is_empty() {
            html.push_str("<dl>\n");
            for (name, value) in self.facts {
                let (name, value) = (Escaped(name), Escaped(value));
                let _ = writeln!(html, "<div><dt>{name}</dt><dd>{value}</dd></div>");
            }
            html.push_str("</dl>\n");
        }
        for (wide, narrow) in self.wide.iter().zip(self.narrow) {
            if !wide.title.is_empty() {
                let _ = writeln!(html, "<h2>{}</h2>", Escaped(&wide.title));
            }
            rows(&mut html, "wide", &wide.rows);
            rows(&mut html, "narrow", &narrow.rows);
        }
        for table in self.tables {
            table.put(&mut html);
        }
        let command = Escaped(self.command);
        let _ = write!(
            html,
            "<p>The same picture again: <code>{command}</code></p>\n</main>\n</body>\n</html>\n"
        );
        html
    }
}

fn rows(html: &mut String, class: &str, rows: &[Row]) {
    for row in rows {
        let _ = writeln!(html, "<div class=\"{class} row\">");
        for panel in row.panels() {
            let (width, height) = (Number(panel.width), Number(panel.height));
            let (title, body) = (Escaped(&panel.title), panel.svg.as_str());
            let _ = write!(
                html,
                "<figure><svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
                 role=\"img\" aria-label=\"{title}\">\n{body}</svg></figure>\n"
            );
        }
        html.push_str("</div>\n");
    }
}

impl Table {
    fn put(&self, html: &mut String) {
        let title = Escaped(&self.title);
        let _ = write!(
            html,
            "<details><summary>{title}</summary>\n<div class=\"scroll\"><table>\n<tr>"
        );
        for head in &self.heads {
            let _ = write!(html, "<th>{}</th>", Escaped(head));
        }
        html.push_str("</tr>\n");
        for row in &self.rows {
            html.push_str("<tr>");
            for cell in row {
                let _ = write!(html, "<td>{}</td>", Escaped(cell));
            }
            html.push_str("</tr>\n");
        }
        html.push_str("</table></div></details>\n");
    }
}

const LAYOUT: &str = "\
*{box-sizing:border-box}\
body{margin:0;background:var(--page);color:var(--ink);line-height:1.45;\
font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif}\
main{max-width:1240px;margin:0 auto;padding:28px 16px 48px}\
h1{font-size:26px;margin:0 0 4px}h2{font-size:20px;margin:36px 0 12px}\
p{margin:0 0 18px;color:var(--muted)}\
dl{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;margin:0 0 16px}\
dl div{background:var(--paper);border-radius:10px;padding:12px 16px;display:flex;\
flex-direction:column-reverse;justify-content:flex-end}\
dt{color:var(--muted);font-size:13px}dd{margin:0;font-size:22px;font-weight:650}\
.row{display:flex;gap:16px;margin-bottom:16px}\
figure{margin:0;flex:1;min-width:0;background:var(--paper);border-radius:10px;padding:20px 24px}\
figure svg{display:block;width:100%;height:auto}\
.narrow{display:none}\
details{background:var(--paper);border-radius:10px;padding:12px 16px;margin-bottom:12px}\
summary{cursor:pointer;font-weight:650}.scroll{overflow-x:auto}\
table{border-collapse:collapse;margin-top:10px;font-size:14px;font-variant-numeric:tabular-nums}\
th,td{text-align:right;padding:3px 14px 3px 0;white-space:nowrap}\
th{color:var(--muted);font-weight:500}th:first-child,td:first-child{text-align:left}\
code{color:var(--ink)}\
@media(max-width:820px){.wide{display:none}.narrow{display:block;max-width:560px;\
margin:0 auto 14px}.narrow figure{padding:14px 12px}.narrow figure+figure{margin-top:14px}\
dl{grid-template-columns:repeat(2,1fr)}dd{font-size:19px}main{padding:18px 10px 32px}}";
