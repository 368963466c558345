//! What a comparison of two contracts finds, told to people and programs.

use std::fmt;

/// One thing that the expected side lists and the actual side does not have as it was.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Incompatibility {
    /// What kind of thing happened.
    pub kind: IncompatibilityKind,
    /// Where: `pkg.Service`, `pkg.Service/Method`, `pkg.Message.Field` or `pkg.Enum.VALUE`, by the
    /// names of the expected side.
    pub path: String,
    /// What the expected side has.
    pub before: String,
    /// What the actual side has; `None` where it has nothing.
    pub after: Option<String>,
    /// What that means, in one sentence.
    pub message: String,
}

impl fmt::Display for Incompatibility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: ", self.kind, self.path)?;
        match &self.after {
            Some(after) => write!(f, "{} became {after}; ", self.before)?,
            None => write!(f, "{} is gone; ", self.before)?,
        }
        f.write_str(&self.message)
    }
}

/// The kinds of incompatibility, in the order in which findings of one path are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IncompatibilityKind {
    /// A service is not there.
    ServiceRemoved,
    /// A method is not there.
    MethodRemoved,
    /// A method takes or returns another message.
    MethodSignatureChanged,
    /// A method streams where it did not, or the other way round.
    MethodStreamingChanged,
    /// A message is not there.
    MessageRemoved,
    /// No field has the number.
    FieldRemoved,
    /// A field has another type.
    FieldTypeChanged,
    /// A field is repeated and was not, or the other way round.
    FieldLabelChanged,
    /// A field has another name.
    FieldRenamed,
    /// A field entered, left or changed its oneof.
    FieldOneOfChanged,
    /// An enum is not there.
    EnumRemoved,
    /// No value of the enum has the number.
    EnumValueRemoved,
    /// A value of the enum has another name.
    EnumValueRenamed,
}

impl IncompatibilityKind {
    /// The name that programs go by, such as `field-removed`.
    pub fn name(self) -> &'static str {
        match self {
            Self::ServiceRemoved => "service-removed",
            Self::MethodRemoved => "method-removed",
            Self::MethodSignatureChanged => "method-signature-changed",
            Self::MethodStreamingChanged => "method-streaming-changed",
            Self::MessageRemoved => "message-removed",
            Self::FieldRemoved => "field-removed",
            Self::FieldTypeChanged => "field-type-changed",
            Self::FieldLabelChanged => "field-label-changed",
            Self::FieldRenamed => "field-renamed",
            Self::FieldOneOfChanged => "field-oneof-changed",
            Self::EnumRemoved => "enum-removed",
            Self::EnumValueRemoved => "enum-value-removed",
            Self::EnumValueRenamed => "enum-value-renamed",
        }
    }
}

impl fmt::Display for IncompatibilityKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
