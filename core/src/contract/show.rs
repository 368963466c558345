//! A contract as people read it.

use super::{
    schema::{Declared, Schema},
    words,
};
use std::fmt;

/// Everything that is compared, in the order in which it is compared.
impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for service in &self.services {
            writeln!(f, "service {}", self.shown(service))?;
            for method in self.methods(service) {
                let name = words::text(self.at(method.name));
                let (shape, signature) = (words::streaming(method), words::signature(self, method));
                writeln!(f, "  {name} {signature}, {shape}")?;
            }
        }
        for message in &self.messages {
            writeln!(f, "message {}", self.shown(message))?;
            for field in self.fields(message) {
                write!(f, "  {}", words::field(self, field))?;
                match field.oneof.is_empty() {
                    true => writeln!(f)?,
                    false => writeln!(f, ", {}", words::oneof(self, field))?,
                }
            }
        }
        for declared in &self.enums {
            writeln!(f, "enum {}", self.shown(declared))?;
            for value in self.values(declared) {
                writeln!(f, "  {}", words::value(self, value))?;
            }
        }
        Ok(())
    }
}

impl Schema {
    fn shown(&self, declared: &Declared) -> String {
        words::text(self.full_name(declared))
    }
}
