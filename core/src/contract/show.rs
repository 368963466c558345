//! A contract as people read it.

use super::{
    schema::{Declared, Schema},
    words,
};
use std::fmt;

/// Everything that is compared, by name.
impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for service in self.by_name(&self.services) {
            writeln!(f, "service {}", self.shown(service))?;
            for method in self.methods(service) {
                let name = words::text(self.at(method.name));
                let (shape, signature) = (words::streaming(method), words::signature(self, method));
                writeln!(f, "  {name} {signature}, {shape}")?;
            }
        }
        for message in self.by_name(&self.messages) {
            writeln!(f, "message {}", self.shown(message))?;
            for field in self.fields(message) {
                write!(f, "  {}", words::field(self, field))?;
                match field.oneof.is_empty() {
                    true => writeln!(f)?,
                    false => writeln!(f, ", {}", words::oneof(self, field))?,
                }
            }
        }
        for declared in self.by_name(&self.enums) {
            writeln!(f, "enum {}", self.shown(declared))?;
            for value in self.values(declared) {
                writeln!(f, "  {}", words::value(self, value))?;
            }
        }
        Ok(())
    }
}

impl Schema {
    fn by_name<'a>(&self, declared: &'a [Declared]) -> Vec<&'a Declared> {
        let mut by_name: Vec<_> = declared.iter().collect();
        by_name.sort_by(|a, b| self.full_name(a).cmp(self.full_name(b)));
        by_name
    }

    fn shown(&self, declared: &Declared) -> String {
        words::text(self.full_name(declared))
    }
}
