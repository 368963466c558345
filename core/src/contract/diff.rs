//! Compares two contracts.

use super::{
    finding::{Incompatibility, IncompatibilityKind as Kind},
    lens::Lens,
    schema::{Declared, EnumValue, Field, Method, Schema},
    words,
};
use std::cmp::Ordering;

/// Finds what the expected side lists and the actual side does not have as it was, sorted by path,
/// then by kind. What the actual side has beyond that is never reported.
///
/// A type of a file that the actual side imports without having it is unknown there, not removed.
/// Where one side was read from source text, what text does not carry is left out: the types of
/// `google.protobuf` and `bcl`, and the enum's name in front of an enum value.
pub fn diff(expected: &Schema, actual: &Schema) -> Vec<Incompatibility> {
    let mut diff = Diff {
        expected,
        actual,
        lens: Lens::new(expected, actual),
        findings: Vec::new(),
    };
    diff.services();
    diff.messages();
    diff.enums();
    let mut findings = diff.findings;
    findings.sort_by(|a, b| a.path.cmp(&b.path).then(a.kind.cmp(&b.kind)));
    findings
}

struct Diff<'a> {
    expected: &'a Schema,
    actual: &'a Schema,
    lens: Lens<'a>,
    findings: Vec<Incompatibility>,
}

impl<'a> Diff<'a> {
    fn services(&mut self) {
        let (expected, actual) = (self.expected, self.actual);
        for (service, now) in self.matched(&expected.services, &actual.services) {
            let Some(now) = now else {
                self.declaration_removed(Kind::ServiceRemoved, service, "the service");
                continue;
            };
            let order = |a: &Method, b: &Method| expected.at(a.name).cmp(actual.at(b.name));
            let (methods, now) = (expected.methods(service), actual.methods(now));
            for (method, now) in pair(methods, now, order) {
                self.method(service, method, now);
            }
        }
    }

    fn method(&mut self, service: &Declared, was: &Method, now: Option<&Method>) {
        let (expected, actual) = (self.expected, self.actual);
        let path = || join(expected.full_name(service), '/', expected.at(was.name));
        let Some(now) = now else {
            return self.removed(Kind::MethodRemoved, path(), words::method(expected, was));
        };
        let same = |was, now| expected.at(was) == actual.at(now);
        if !same(was.input, now.input) || !same(was.output, now.output) {
            self.changed(
                Kind::MethodSignatureChanged,
                path(),
                words::signature(expected, was),
                words::signature(actual, now),
            );
        }
        if (was.client_streaming, was.server_streaming)
            != (now.client_streaming, now.server_streaming)
        {
            self.changed(
                Kind::MethodStreamingChanged,
                path(),
                words::streaming(was).to_owned(),
                words::streaming(now).to_owned(),
            );
        }
    }

    fn messages(&mut self) {
        let (expected, actual) = (self.expected, self.actual);
        for (message, now) in self.matched(&expected.messages, &actual.messages) {
            let Some(now) = now else {
                self.declaration_removed(Kind::MessageRemoved, message, "the message");
                continue;
            };
            let order = |a: &Field, b: &Field| a.number.cmp(&b.number);
            for (field, now) in pair(expected.fields(message), actual.fields(now), order) {
                self.field(message, field, now);
            }
        }
    }

    fn field(&mut self, message: &Declared, was: &Field, now: Option<&Field>) {
        let (expected, actual) = (self.expected, self.actual);
        let path = || join(expected.full_name(message), '.', expected.at(was.name));
        let Some(now) = now else {
            return self.removed(Kind::FieldRemoved, path(), words::field(expected, was));
        };
        if !self.lens.same_type(was, now) {
            self.changed(
                Kind::FieldTypeChanged,
                path(),
                words::type_of(expected, was),
                words::type_of(actual, now),
            );
        }
        if was.repeated != now.repeated {
            let mut finding = Incompatibility {
                kind: Kind::FieldLabelChanged,
                path: path(),
                before: words::label(was).to_owned(),
                after: Some(words::label(now).to_owned()),
                message: String::new(),
            };
            words::explain_label(&mut finding, was);
            self.findings.push(finding);
        }
        if expected.at(was.name) != actual.at(now.name) {
            self.changed(
                Kind::FieldRenamed,
                path(),
                words::text(expected.at(was.name)),
                words::text(actual.at(now.name)),
            );
        }
        if expected.at(was.oneof) != actual.at(now.oneof) {
            self.changed(
                Kind::FieldOneOfChanged,
                path(),
                words::oneof(expected, was),
                words::oneof(actual, now),
            );
        }
    }

    fn enums(&mut self) {
        let (expected, actual) = (self.expected, self.actual);
        for (declared, now) in self.matched(&expected.enums, &actual.enums) {
            let Some(now) = now else {
                self.declaration_removed(Kind::EnumRemoved, declared, "the enum");
                continue;
            };
            let order = |a: &EnumValue, b: &EnumValue| a.number.cmp(&b.number);
            for (value, now) in pair(expected.values(declared), actual.values(now), order) {
                self.enum_value(declared, value, now);
            }
        }
    }

    fn enum_value(&mut self, declared: &Declared, was: &EnumValue, now: Option<&EnumValue>) {
        let (expected, actual) = (self.expected, self.actual);
        let name = expected.full_name(declared);
        let path = || join(name, '.', expected.at(was.name));
        let Some(now) = now else {
            return self.removed(Kind::EnumValueRemoved, path(), words::value(expected, was));
        };
        let (old, new) = (expected.at(was.name), actual.at(now.name));
        if !self.lens.same_value_name(name, old, new) {
            self.changed(
                Kind::EnumValueRenamed,
                path(),
                words::text(old),
                words::text(new),
            );
        }
    }

    /// Every declaration of the expected side that is compared, with the one of the same name.
    fn matched(
        &self,
        expected: &'a [Declared],
        actual: &'a [Declared],
    ) -> impl Iterator<Item = (&'a Declared, Option<&'a Declared>)> + use<'a> {
        let lens = self.lens;
        let (old, new) = (self.expected, self.actual);
        pair(expected, actual, move |a, b| old.key(a).cmp(&new.key(b)))
            .filter(move |(declared, now)| lens.sees(declared, now.is_some()))
    }

    fn declaration_removed(&mut self, kind: Kind, declared: &Declared, what: &str) {
        let path = words::text(self.expected.full_name(declared));
        self.removed(kind, path, what.to_owned());
    }

    fn removed(&mut self, kind: Kind, path: String, before: String) {
        let message = words::explain(kind).to_owned();
        self.findings.push(Incompatibility {
            kind,
            path,
            before,
            after: None,
            message,
        });
    }

    fn changed(&mut self, kind: Kind, path: String, before: String, after: String) {
        let message = words::explain(kind).to_owned();
        self.findings.push(Incompatibility {
            kind,
            path,
            before,
            after: Some(after),
            message,
        });
    }
}

/// Walks two lists in order, and gives each of the first with its match in the second.
fn pair<'a, T>(
    expected: &'a [T],
    actual: &'a [T],
    order: impl Fn(&T, &T) -> Ordering,
) -> impl Iterator<Item = (&'a T, Option<&'a T>)> {
    let mut actual = actual.iter().peekable();
    expected.iter().map(move |one| {
        while let Some(other) = actual.peek() {
            match order(one, other) {
                Ordering::Greater => drop(actual.next()),
                Ordering::Equal => return (one, actual.next()),
                Ordering::Less => break,
            }
        }
        (one, None)
    })
}

fn join(owner: &[u8], separator: char, member: &[u8]) -> String {
    format!("{}{separator}{}", words::text(owner), words::text(member))
}
