//! Enum values that clash with another name.
//!
//! A value stands beside its enum, not in it, so that two enums of a package cannot have values of
//! one name, and no value can have the name of a message.

use super::not_writable;
use crate::contract::{ContractError, lens::prefix_of, set::join};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FileDescriptorSet, ServiceDescriptorProto,
};
use std::collections::{BTreeMap, BTreeSet};

/// Puts the enum's name in front of every value that clashes.
pub(super) fn prefix_clashing_values(set: &mut FileDescriptorSet) -> Result<(), ContractError> {
    let packages: BTreeSet<String> = set.file.iter().map(|file| file.package().into()).collect();
    for file in &mut set.file {
        let scope = file.package().to_owned();
        let around = match scope.as_str() {
            "" => String::new(),
            scope => format!("{scope}."),
        };
        // A package within this one takes a name of this one.
        let inner = packages
            .iter()
            .filter_map(|inner| inner.strip_prefix(&around));
        let inner = inner.filter_map(|inner| inner.split('.').next());
        let messages = file.message_type.iter().map(DescriptorProto::name);
        let services = file.service.iter().map(ServiceDescriptorProto::name);
        let others = inner.chain(messages).chain(services);
        let others = others.map(str::to_owned).collect();
        prefix(&scope, others, &mut file.enum_type)?;
        for message in &mut file.message_type {
            within(&scope, message)?;
        }
    }
    Ok(())
}

fn within(scope: &str, message: &mut DescriptorProto) -> Result<(), ContractError> {
    let scope = join(scope, message.name());
    let fields = message.field.iter().map(|field| field.name());
    let oneofs = message.oneof_decl.iter().map(|oneof| oneof.name());
    let nested = message.nested_type.iter().map(|nested| nested.name());
    let others = fields.chain(oneofs).chain(nested);
    let others = others.map(str::to_owned).collect();
    prefix(&scope, others, &mut message.enum_type)?;
    for nested in &mut message.nested_type {
        within(&scope, nested)?;
    }
    Ok(())
}

/// The enums of one scope, among the other names there.
fn prefix(
    scope: &str,
    mut others: BTreeSet<String>,
    enums: &mut [EnumDescriptorProto],
) -> Result<(), ContractError> {
    others.extend(enums.iter().map(|declared| declared.name().to_owned()));
    // In the body of an enum they begin another statement.
    others.extend(["option", "reserved"].map(str::to_owned));
    let clashing = |enums: &[EnumDescriptorProto]| -> BTreeSet<String> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for value in enums.iter().flat_map(|declared| &declared.value) {
            *counts.entry(value.name()).or_default() += 1;
        }
        let clashes = |(name, count): &(&str, usize)| *count > 1 || others.contains(*name);
        let counts = counts.into_iter().filter(clashes);
        counts.map(|(name, _)| name.to_owned()).collect()
    };
    let before = clashing(enums);
    for declared in enums.iter_mut() {
        let prefix = prefix_of(declared.name().as_bytes());
        let prefix = String::from_utf8_lossy(&prefix).into_owned();
        for value in &mut declared.value {
            if before.contains(value.name()) {
                value.name = Some(format!("{prefix}{}", value.name()));
            }
        }
    }
    match clashing(enums).first() {
        None => Ok(()),
        Some(name) => not_writable(
            join(scope, name),
            "clashes with another name, even with its enum's name in front of it",
        ),
    }
}
