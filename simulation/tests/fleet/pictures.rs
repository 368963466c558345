//! Pictures are XML, hold nothing outside of themselves, and are the same for the same seed.

use crate::{play, secs, small};
use chronicle_simulation::{
    fleet::{Comparison, Fleet, Scenario},
    plot,
};
use roxmltree::{Document, Node, ParsingOptions};
use std::{collections::BTreeSet, time::Instant};

/// What is drawn of a fleet: a picture and a page.
fn draw(fleet: &Fleet) -> [String; 2] {
    let report = play(fleet);
    [
        plot::picture(&report),
        plot::page(&report, "chronicle simulate --out <somewhere & \"else\">"),
    ]
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let fleet = small(Scenario::ColdStart);
    assert_eq!(draw(&fleet), draw(&fleet));
    let other = Fleet { seed: 2, ..fleet };
    assert_ne!(draw(&other), draw(&small(Scenario::ColdStart)));
}

#[test]
fn pictures_of_every_scenario_lie_within_their_frames() {
    for scenario in Scenario::ALL {
        for text in draw(&Fleet {
            clients: 6,
            servers: 3,
            ..small(scenario)
        }) {
            check(&text, 5);
        }
    }
}

#[test]
fn a_fleet_of_one_can_be_drawn() {
    // While the only server is down, there is no spread.
    for text in draw(&Fleet {
        clients: 1,
        servers: 1,
        ..small(Scenario::Crash)
    }) {
        check(&text, 5);
    }
}

#[test]
fn pictures_of_many_servers_lie_within_their_frames() {
    for text in draw(&Fleet {
        clients: 8,
        servers: 120,
        ..small(Scenario::ColdStart)
    }) {
        check(&text, 5);
    }
}

#[test]
fn comparisons_lie_within_their_frames_too() {
    let fleet = Fleet {
        clients: 3,
        servers: 3,
        ..small(Scenario::ColdStart)
    };
    let comparison = Comparison::run(&fleet, Instant::now(), |_| {}).unwrap();
    let picture = plot::comparison_picture(&comparison);
    // Spread and times of 14 variants.
    check(&picture, 28);
    check(
        &plot::comparison_page(&comparison, "chronicle simulate --compare"),
        56,
    );
    let again = Comparison::run(&fleet, Instant::now(), |_| {}).unwrap();
    assert_eq!(plot::comparison_picture(&again), picture);
}

#[test]
fn one_is_told_as_one() {
    let fleet = Fleet {
        clients: 1,
        servers: 1,
        ..small(Scenario::Crash)
    };
    for text in draw(&fleet) {
        assert!(text.contains("<title>Crash: 1 client on 1 server</title>"));
        assert!(text.contains("1 of 1 server is down"));
    }
}

#[test]
fn the_table_over_time_ends_with_the_last_sample_and_has_none_twice() {
    let whole = play(&small(Scenario::ColdStart));
    for number in [1, 2, 60, 61, 62, 119, 121] {
        let mut report = whole.clone();
        report.samples.truncate(number);
        assert_eq!(report.samples.len(), number);
        for (second, sample) in report.samples.iter_mut().enumerate() {
            sample.at = secs(60 * second as u64);
        }
        let page = plot::page(&report, "");
        let options = ParsingOptions {
            allow_dtd: true,
            ..ParsingOptions::default()
        };
        let document = Document::parse_with_options(&page, options).unwrap();
        let mut tables = document
            .descendants()
            .filter(|node| node.has_tag_name("table"));
        let cells = tables
            .next()
            .unwrap()
            .descendants()
            .filter(|node| node.has_tag_name("tr"))
            .filter_map(|row| row.children().find(|cell| cell.has_tag_name("td")));
        let times: Vec<_> = cells.map(|cell| cell.text().unwrap()).collect();
        let distinct: BTreeSet<_> = times.iter().collect();
        assert_eq!(distinct.len(), times.len(), "{number}: {times:?}");
        let last = plot::time(secs(60 * (number as u64 - 1)));
        assert_eq!(times.last(), Some(&&*last), "{number}");
    }
}

/// Well-formed, self-contained, and all that is drawn within its viewport.
fn check(text: &str, lines_at_least: usize) {
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    let document = Document::parse_with_options(text, options).unwrap();
    for forbidden in [
        "<script", "http://", "https://", "url(", "@import", "NaN", "inf",
    ] {
        let without_namespace = text.replace("http://www.w3.org/2000/svg", "");
        assert!(!without_namespace.contains(forbidden), "{forbidden}");
    }
    let all = document.descendants();
    let pictures: Vec<Node> = all.filter(|node| node.has_tag_name(SVG)).collect();
    assert!(!pictures.is_empty());
    let mut lines = 0;
    for picture in pictures {
        let view: Vec<f64> = numbers(picture.attribute("viewBox").unwrap());
        for node in picture.descendants() {
            lines += usize::from(node.tag_name().name() == "polyline");
            for (x, y) in points(node) {
                let (x, y) = moved(node, (x, y));
                assert!(
                    (0.0..=view[2]).contains(&x),
                    "{x} of {} in {node:?}",
                    view[2]
                );
                assert!(
                    (0.0..=view[3]).contains(&y),
                    "{y} of {} in {node:?}",
                    view[3]
                );
            }
        }
    }
    assert!(lines >= lines_at_least, "{lines} lines");
}

/// The points that an element names.
fn points(node: Node) -> Vec<(f64, f64)> {
    let at = |name: &str| -> f64 {
        node.attribute(name)
            .map_or(0.0, |text| text.parse().unwrap())
    };
    match node.tag_name().name() {
        "polyline" | "polygon" => {
            let all = numbers(node.attribute("points").unwrap());
            all.chunks(2).map(|pair| (pair[0], pair[1])).collect()
        }
        "line" => vec![(at("x1"), at("y1")), (at("x2"), at("y2"))],
        "rect" => vec![
            (at("x"), at("y")),
            (at("x") + at("width"), at("y") + at("height")),
        ],
        "text" => vec![(at("x"), at("y"))],
        // Rectangles: "M1 2h3v4h-3z".
        "path" => {
            let path = node.attribute("d").unwrap();
            let rectangles = path.split('z').filter(|part| !part.is_empty());
            let corners = rectangles.flat_map(|part| {
                let all = numbers(&part.replace(['M', 'h', 'v'], " "));
                [(all[0], all[1]), (all[0] + all[2], all[1] + all[3])]
            });
            corners.collect()
        }
        _ => vec![],
    }
}

/// Where a point is in its picture.
fn moved(node: Node, (x, y): (f64, f64)) -> (f64, f64) {
    let groups = node
        .ancestors()
        .filter_map(|one| one.attribute("transform"));
    groups.fold((x, y), |(x, y), transform| {
        let inner = transform.strip_prefix("translate(").unwrap();
        let by = numbers(inner.strip_suffix(')').unwrap());
        (x + by[0], y + by[1])
    })
}

fn numbers(text: &str) -> Vec<f64> {
    let words = text.split([' ', ',']).filter(|word| !word.is_empty());
    words.map(|word| word.parse().unwrap()).collect()
}

const SVG: (&str, &str) = ("http://www.w3.org/2000/svg", "svg");
