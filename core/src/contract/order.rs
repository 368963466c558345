//! Brings the normal form into order, and finds what is declared twice.

use super::{
    ContractError,
    schema::{Declared, ENUM, EnumValue, Field, MESSAGE, Method, Schema, Span},
};
use std::cmp::Ordering;

/// Sorts everything by what it is matched by. A declaration that stands in the set twice with the
/// same content counts once.
pub(super) fn order(schema: &mut Schema) -> Result<(), ContractError> {
    name_missing_files(schema);
    sort_members(schema)?;
    sort_declared(schema)?;
    find_kinds(schema);
    Ok(())
}

/// Of the imports, only those stay that are not in the set.
fn name_missing_files(schema: &mut Schema) {
    let mut missing = std::mem::take(&mut schema.missing_files);
    let mut files: Vec<&[u8]> = schema
        .files
        .iter()
        .map(|file| schema.at(file.name))
        .collect();
    files.sort_unstable();
    missing.retain(|name| files.binary_search(&schema.at(*name)).is_err());
    missing.sort_unstable_by_key(|name| schema.at(*name));
    missing.dedup_by_key(|name| schema.at(*name));
    schema.missing_files = missing;
}

fn sort_members(schema: &mut Schema) -> Result<(), ContractError> {
    let mut twice = Twice {
        smallest: None,
        scratch: Vec::new(),
    };
    let bytes = &schema.bytes;
    for service in &schema.services {
        let methods = &mut schema.methods[service.members()];
        methods.sort_unstable_by_key(|method| &bytes[method.name.range()]);
        let names = methods.iter().map(|method| method.name);
        twice.look(&schema.names, bytes, service, '/', names);
    }
    for message in &schema.messages {
        let fields = &mut schema.fields[message.members()];
        if !fields.is_sorted_by_key(|field| field.number) {
            fields.sort_unstable_by_key(|field| field.number);
        }
        let names = fields.iter().map(|field| field.name);
        twice.look(&schema.names, bytes, message, '.', names);
        if let Some(number) = repeated_number(fields) {
            twice.note(
                &schema.names,
                message,
                format_args!(", field number {number}"),
            );
        }
    }
    for declared in &mut schema.enums {
        let values = &mut schema.values[declared.members()];
        let names = values.iter().map(|value| value.name);
        twice.look(&schema.names, bytes, declared, '.', names);
        // Stable: of aliases, the first declared is the name.
        values.sort_by_key(|value| value.number);
        declared.members.length = keep_first_of_each_number(values);
    }
    match twice.smallest {
        Some(symbol) => Err(ContractError::DeclaredTwice(symbol)),
        None => Ok(()),
    }
}

/// Collects what is declared twice. Of all, the smallest is told, so that the order of the set
/// does not matter.
struct Twice<'a> {
    smallest: Option<String>,
    scratch: Vec<&'a [u8]>,
}

impl<'a> Twice<'a> {
    fn look(
        &mut self,
        all_names: &[u8],
        bytes: &'a [u8],
        declared: &Declared,
        separator: char,
        names: impl Iterator<Item = Span>,
    ) {
        self.scratch.clear();
        self.scratch.extend(names.map(|name| &bytes[name.range()]));
        if let Some(name) = repeated_name(&mut self.scratch) {
            let name = String::from_utf8_lossy(name);
            self.note(all_names, declared, format_args!("{separator}{name}"));
        }
    }

    fn note(&mut self, all_names: &[u8], declared: &Declared, member: std::fmt::Arguments<'_>) {
        let owner = String::from_utf8_lossy(&all_names[declared.name.range()]);
        let symbol = format!("{owner}{member}");
        if self
            .smallest
            .as_ref()
            .is_none_or(|smallest| symbol < *smallest)
        {
            self.smallest = Some(symbol);
        }
    }
}

/// The smallest name that is there twice.
fn repeated_name<'a>(names: &mut [&'a [u8]]) -> Option<&'a [u8]> {
    // Most have few members; comparing lengths first is then faster than sorting.
    if names.len() <= FEW {
        let is_twice = |(index, name): (usize, &&[u8])| names[..index].contains(name);
        if !names.iter().enumerate().any(is_twice) {
            return None;
        }
    }
    names.sort_unstable();
    names
        .windows(2)
        .find(|pair| pair[0] == pair[1])
        .map(|pair| pair[0])
}

fn repeated_number(fields: &[Field]) -> Option<i32> {
    let twice = fields
        .windows(2)
        .find(|pair| pair[0].number == pair[1].number);
    twice.map(|pair| pair[0].number)
}

/// Moves the first of each number to the front, and gives their number.
fn keep_first_of_each_number(values: &mut [EnumValue]) -> u32 {
    let mut kept = 0;
    for index in 0..values.len() {
        if kept == 0 || values[kept - 1].number != values[index].number {
            values[kept] = values[index];
            kept += 1;
        }
    }
    kept as u32
}

fn sort_declared(schema: &mut Schema) -> Result<(), ContractError> {
    let mut services = std::mem::take(&mut schema.services);
    let mut messages = std::mem::take(&mut schema.messages);
    let mut enums = std::mem::take(&mut schema.enums);
    for declared in [&mut services, &mut messages, &mut enums] {
        declared.sort_unstable_by(|a, b| schema.key(a).cmp(&schema.key(b)));
    }
    let twice = [
        keep_one_of_equals(schema, &mut services, same_service),
        keep_one_of_equals(schema, &mut messages, same_message),
        keep_one_of_equals(schema, &mut enums, same_enum),
        first_in_both(schema, &services, &messages),
        first_in_both(schema, &services, &enums),
        first_in_both(schema, &enums, &messages),
    ];
    schema.services = services;
    schema.messages = messages;
    schema.enums = enums;
    match twice.into_iter().flatten().min() {
        Some(symbol) => Err(ContractError::DeclaredTwice(symbol)),
        None => Ok(()),
    }
}

/// Whether two schemas in order declare the same.
pub(super) fn same(one: &Schema, other: &Schema) -> bool {
    let all_same = |mine: &[Declared], theirs: &[Declared], same: Same| {
        all_same(mine, theirs, |(mine, theirs)| {
            one.key(mine) == other.key(theirs) && same((one, mine), (other, theirs))
        })
    };
    all_same(&one.services, &other.services, same_service)
        && all_same(&one.messages, &other.messages, same_message)
        && all_same(&one.enums, &other.enums, same_enum)
}

/// Compares the members of two declarations, each of its schema.
type Same = fn((&Schema, &Declared), (&Schema, &Declared)) -> bool;

fn keep_one_of_equals(schema: &Schema, declared: &mut Vec<Declared>, same: Same) -> Option<String> {
    let mut twice = None;
    declared.dedup_by(|later, earlier| {
        if schema.key(later) != schema.key(earlier) {
            return false;
        }
        if !same((schema, earlier), (schema, later)) {
            let name = schema.full_name(earlier);
            twice = Some(twice.map_or(name, |other: &[u8]| other.min(name)));
        }
        true
    });
    twice.map(|name| String::from_utf8_lossy(name).into_owned())
}

fn same_service(one: (&Schema, &Declared), other: (&Schema, &Declared)) -> bool {
    let ((mine, one), (theirs, other)) = (one, other);
    let same = |(one, other): (&Method, &Method)| {
        mine.at(one.name) == theirs.at(other.name)
            && mine.at(one.input) == theirs.at(other.input)
            && mine.at(one.output) == theirs.at(other.output)
            && one.client_streaming == other.client_streaming
            && one.server_streaming == other.server_streaming
    };
    all_same(mine.methods(one), theirs.methods(other), same)
}

fn same_message(one: (&Schema, &Declared), other: (&Schema, &Declared)) -> bool {
    let ((mine, one), (theirs, other)) = (one, other);
    let same = |(one, other): (&Field, &Field)| {
        one.number == other.number
            && mine.at(one.name) == theirs.at(other.name)
            && mine.at(one.type_name) == theirs.at(other.type_name)
            && mine.at(one.oneof) == theirs.at(other.oneof)
            && one.kind == other.kind
            && one.repeated == other.repeated
    };
    all_same(mine.fields(one), theirs.fields(other), same)
}

fn same_enum(one: (&Schema, &Declared), other: (&Schema, &Declared)) -> bool {
    let ((mine, one), (theirs, other)) = (one, other);
    let same = |(one, other): (&EnumValue, &EnumValue)| {
        one.number == other.number && mine.at(one.name) == theirs.at(other.name)
    };
    all_same(mine.values(one), theirs.values(other), same)
}

fn all_same<T>(one: &[T], other: &[T], same: impl FnMut((&T, &T)) -> bool) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(same)
}

/// The smallest name that two lists in order share.
fn first_in_both(schema: &Schema, one: &[Declared], other: &[Declared]) -> Option<String> {
    let (mut one, mut other) = (one.iter().peekable(), other.iter().peekable());
    let mut smallest = None;
    while let (Some(left), Some(right)) = (one.peek(), other.peek()) {
        match schema.key(left).cmp(&schema.key(right)) {
            Ordering::Less => drop(one.next()),
            Ordering::Greater => drop(other.next()),
            Ordering::Equal => {
                let name = schema.full_name(left);
                smallest = Some(smallest.map_or(name, |other: &[u8]| other.min(name)));
                one.next();
            }
        }
    }
    smallest.map(|name| String::from_utf8_lossy(name).into_owned())
}

/// A field that names a type may leave it open whether that is a message or an enum.
fn find_kinds(schema: &mut Schema) {
    let open = |field: &Field| field.kind == 0 && !field.type_name.is_empty();
    if !schema.fields.iter().any(open) {
        return;
    }
    let mut fields = std::mem::take(&mut schema.fields);
    for field in fields.iter_mut().filter(|field| open(field)) {
        let name = schema.at(field.type_name);
        if schema.find(&schema.messages, name).is_some() {
            field.kind = MESSAGE;
        } else if schema.find(&schema.enums, name).is_some() {
            field.kind = ENUM;
        }
    }
    schema.fields = fields;
}

const FEW: usize = 16;
