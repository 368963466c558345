//! Reads declarations into descriptors. Names of types stay as they are written.

use super::{
    ContractError,
    lexer::{Lexer, MAX_NAME, Token},
};
use crate::contract::wire::MAX_NESTING;
use prost_types::{
    DescriptorProto, EnumDescriptorProto, EnumValueDescriptorProto, FieldDescriptorProto,
    FileDescriptorProto, FileDescriptorSet, MessageOptions, MethodDescriptorProto,
    OneofDescriptorProto, ServiceDescriptorProto,
    field_descriptor_proto::{Label, Type},
};
use std::collections::BTreeMap;

/// One file a package.
pub(super) fn parse(text: &str) -> Result<FileDescriptorSet, ContractError> {
    let mut parser = Parser {
        lexer: Lexer::new(text),
    };
    let mut files = BTreeMap::new();
    let mut package = "";
    loop {
        match parser.lexer.next()? {
            Token::End => break,
            Token::Symbol(';') => {}
            Token::Word("syntax" | "edition") => {
                package = "";
                parser.skip_statement()?;
            }
            Token::Word("package") => {
                package = parser.word("the name of a package")?;
                parser.expect(';')?;
            }
            Token::Word("import" | "option" | "extend") => parser.skip_statement()?,
            Token::Word("message") => {
                let message = parser.message(MAX_NESTING - 2, package.len())?;
                file(&mut files, package).message_type.push(message);
            }
            Token::Word("enum") => {
                let declared = parser.enumeration()?;
                file(&mut files, package).enum_type.push(declared);
            }
            Token::Word("service") => {
                let service = parser.service()?;
                file(&mut files, package).service.push(service);
            }
            token => return Err(parser.unexpected(token, "a declaration")),
        }
    }
    Ok(FileDescriptorSet {
        file: files.into_values().collect(),
    })
}

fn file<'a, 'text>(
    files: &'a mut BTreeMap<&'text str, FileDescriptorProto>,
    package: &'text str,
) -> &'a mut FileDescriptorProto {
    files.entry(package).or_insert_with(|| {
        let name = if package.is_empty() {
            "contract"
        } else {
            package
        };
        FileDescriptorProto {
            name: Some(format!("{name}.proto")),
            package: (!package.is_empty()).then(|| package.to_owned()),
            syntax: Some("proto3".to_owned()),
            ..FileDescriptorProto::default()
        }
    })
}

struct Parser<'a> {
    lexer: Lexer<'a>,
}

type Parsed<T = ()> = Result<T, ContractError>;

impl<'a> Parser<'a> {
    fn message(&mut self, levels: usize, scope: usize) -> Parsed<DescriptorProto> {
        let name = self.word("the name of a message")?;
        let scope = scope + 1 + name.len();
        if levels == 0 || scope > MAX_NAME {
            return Err(self.lexer.error("messages nested too deep"));
        }
        let mut message = DescriptorProto {
            name: Some(name.to_owned()),
            ..DescriptorProto::default()
        };
        self.expect('{')?;
        loop {
            match self.lexer.next()? {
                Token::Symbol('}') => return Ok(message),
                Token::Symbol(';') => {}
                Token::Word("message") => {
                    message.nested_type.push(self.message(levels - 1, scope)?)
                }
                Token::Word("enum") => message.enum_type.push(self.enumeration()?),
                Token::Word("oneof") => self.oneof(&mut message)?,
                Token::Word("option" | "reserved" | "extensions" | "extend") => {
                    self.skip_statement()?;
                }
                Token::Word("map") if self.lexer.peek()? == Token::Symbol('<') => {
                    self.map(&mut message)?;
                }
                Token::Word("repeated") => {
                    let type_name = self.word("a type")?;
                    message.field.push(self.field(type_name, Label::Repeated)?);
                }
                Token::Word("optional") => {
                    let type_name = self.word("a type")?;
                    message.field.push(FieldDescriptorProto {
                        proto3_optional: Some(true),
                        ..self.field(type_name, Label::Optional)?
                    });
                }
                Token::Word("required") => {
                    let type_name = self.word("a type")?;
                    message.field.push(self.field(type_name, Label::Required)?);
                }
                Token::Word(type_name) => {
                    message.field.push(self.field(type_name, Label::Optional)?);
                }
                token => return Err(self.unexpected(token, "a field")),
            }
        }
    }

    fn oneof(&mut self, message: &mut DescriptorProto) -> Parsed {
        let name = self.word("the name of a oneof")?.to_owned();
        let index = message.oneof_decl.len() as i32;
        message.oneof_decl.push(OneofDescriptorProto {
            name: Some(name),
            options: None,
        });
        self.expect('{')?;
        loop {
            match self.lexer.next()? {
                Token::Symbol('}') => return Ok(()),
                Token::Symbol(';') => {}
                Token::Word("option") => self.skip_statement()?,
                Token::Word(type_name) => {
                    let field = self.field(type_name, Label::Optional)?;
                    message.field.push(FieldDescriptorProto {
                        oneof_index: Some(index),
                        ..field
                    });
                }
                token => return Err(self.unexpected(token, "a field")),
            }
        }
    }

    /// `map<K, V>` is short for a repeated message with a key and a value.
    fn map(&mut self, message: &mut DescriptorProto) -> Parsed {
        self.expect('<')?;
        let key = self.word("the type of a key")?;
        self.expect(',')?;
        let value = self.word("the type of a value")?;
        self.expect('>')?;
        let name = self.word("the name of a field")?;
        let entry = format!("{}Entry", camel_case(name));
        let field = self.rest_of_field(entry.clone(), name, Label::Repeated)?;
        message.field.push(FieldDescriptorProto {
            r#type: Some(Type::Message.into()),
            ..field
        });
        message.nested_type.push(DescriptorProto {
            name: Some(entry),
            field: vec![
                new_field(key, "key", 1, Label::Optional),
                new_field(value, "value", 2, Label::Optional),
            ],
            options: Some(MessageOptions {
                map_entry: Some(true),
                ..MessageOptions::default()
            }),
            ..DescriptorProto::default()
        });
        Ok(())
    }

    fn field(&mut self, type_name: &str, label: Label) -> Parsed<FieldDescriptorProto> {
        let name = self.word("the name of a field")?;
        self.rest_of_field(type_name.to_owned(), name, label)
    }

    fn rest_of_field(
        &mut self,
        type_name: String,
        name: &str,
        label: Label,
    ) -> Parsed<FieldDescriptorProto> {
        self.expect('=')?;
        let number = self.number()?;
        self.options()?;
        Ok(new_field(&type_name, name, number, label))
    }

    fn enumeration(&mut self) -> Parsed<EnumDescriptorProto> {
        let mut declared = EnumDescriptorProto {
            name: Some(self.word("the name of an enum")?.to_owned()),
            ..EnumDescriptorProto::default()
        };
        self.expect('{')?;
        loop {
            match self.lexer.next()? {
                Token::Symbol('}') => return Ok(declared),
                Token::Symbol(';') => {}
                Token::Word("option" | "reserved") if self.lexer.peek()? != Token::Symbol('=') => {
                    self.skip_statement()?;
                }
                Token::Word(name) => {
                    self.expect('=')?;
                    let number = self.number()?;
                    self.options()?;
                    declared.value.push(EnumValueDescriptorProto {
                        name: Some(name.to_owned()),
                        number: Some(number),
                        options: None,
                    });
                }
                token => return Err(self.unexpected(token, "a value")),
            }
        }
    }

    fn service(&mut self) -> Parsed<ServiceDescriptorProto> {
        let mut service = ServiceDescriptorProto {
            name: Some(self.word("the name of a service")?.to_owned()),
            ..ServiceDescriptorProto::default()
        };
        self.expect('{')?;
        loop {
            match self.lexer.next()? {
                Token::Symbol('}') => return Ok(service),
                Token::Symbol(';') => {}
                Token::Word("option") => self.skip_statement()?,
                Token::Word("rpc") => service.method.push(self.method()?),
                token => return Err(self.unexpected(token, "rpc")),
            }
        }
    }

    fn method(&mut self) -> Parsed<MethodDescriptorProto> {
        let name = self.word("the name of a method")?.to_owned();
        let (client_streaming, input) = self.streamed_type()?;
        match self.lexer.next()? {
            Token::Word("returns") => {}
            token => return Err(self.unexpected(token, "returns")),
        }
        let (server_streaming, output) = self.streamed_type()?;
        match self.lexer.next()? {
            Token::Symbol(';') => {}
            Token::Symbol('{') => self.skip_block()?,
            token => return Err(self.unexpected(token, "; or {")),
        }
        Ok(MethodDescriptorProto {
            name: Some(name),
            input_type: Some(input),
            output_type: Some(output),
            options: None,
            client_streaming: Some(client_streaming),
            server_streaming: Some(server_streaming),
        })
    }

    /// `(Type)` or `(stream Type)`
    fn streamed_type(&mut self) -> Parsed<(bool, String)> {
        self.expect('(')?;
        let mut name = self.word("a type")?;
        let streaming = name == "stream" && self.lexer.peek()? != Token::Symbol(')');
        if streaming {
            name = self.word("a type")?;
        }
        self.expect(')')?;
        Ok((streaming, name.to_owned()))
    }

    /// `[...]` where there is any, and the semicolon.
    fn options(&mut self) -> Parsed {
        match self.lexer.next()? {
            Token::Symbol(';') => Ok(()),
            Token::Symbol('[') => self.skip_statement(),
            token => Err(self.unexpected(token, "; or [")),
        }
    }

    /// Up to a semicolon outside of braces, or to the end of a block.
    fn skip_statement(&mut self) -> Parsed {
        loop {
            match self.lexer.next()? {
                Token::Symbol(';') => return Ok(()),
                Token::Symbol('{') => {
                    self.skip_block()?;
                    // An option's value may be a block; its semicolon is a statement of its own.
                    match self.lexer.peek()? {
                        Token::Symbol(';' | ']' | ',') => {}
                        Token::Word(_) | Token::Text | Token::Symbol(_) | Token::End => {
                            return Ok(());
                        }
                    }
                }
                Token::Symbol('}') => return Err(self.unexpected(Token::Symbol('}'), ";")),
                Token::End => return Err(self.unexpected(Token::End, ";")),
                Token::Word(_) | Token::Text | Token::Symbol(_) => {}
            }
        }
    }

    /// What is left of a block.
    fn skip_block(&mut self) -> Parsed {
        let mut open = 1_u32;
        while open > 0 {
            match self.lexer.next()? {
                Token::Symbol('{') => open = open.saturating_add(1),
                Token::Symbol('}') => open -= 1,
                Token::End => return Err(self.unexpected(Token::End, "}")),
                Token::Word(_) | Token::Text | Token::Symbol(_) => {}
            }
        }
        Ok(())
    }

    fn number(&mut self) -> Parsed<i32> {
        let is_negative = self.lexer.peek()? == Token::Symbol('-');
        if is_negative {
            self.lexer.next()?;
        }
        let digits = self.word("a number")?;
        let (digits, radix) = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
            Some(hex) => (hex, 16),
            None if digits.len() > 1 && digits.starts_with('0') => (digits, 8),
            None => (digits, 10),
        };
        let number = i64::from_str_radix(digits, radix).ok();
        let number = number.map(|number| if is_negative { -number } else { number });
        number
            .and_then(|number| i32::try_from(number).ok())
            .ok_or_else(|| {
                self.lexer
                    .error(format!("{digits} is no number of 32 bits"))
            })
    }

    fn word(&mut self, what: &str) -> Parsed<&'a str> {
        match self.lexer.next()? {
            Token::Word(word) => Ok(word),
            token => Err(self.unexpected(token, what)),
        }
    }

    fn expect(&mut self, symbol: char) -> Parsed {
        match self.lexer.next()? {
            Token::Symbol(found) if found == symbol => Ok(()),
            token => Err(self.unexpected(token, &symbol.to_string())),
        }
    }

    fn unexpected(&self, token: Token<'_>, expected: &str) -> ContractError {
        let found = match token {
            Token::Word(word) => format!("{word:?}"),
            Token::Text => "a string".to_owned(),
            Token::Symbol(symbol) => format!("{symbol:?}"),
            Token::End => "the end of the text".to_owned(),
        };
        self.lexer
            .error(format!("{found} where {expected} was expected"))
    }
}

fn new_field(type_name: &str, name: &str, number: i32, label: Label) -> FieldDescriptorProto {
    let scalar = SCALARS.iter().find(|(name, _)| *name == type_name);
    FieldDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        label: Some(label.into()),
        r#type: scalar.map(|(_, scalar)| (*scalar).into()),
        type_name: scalar.is_none().then(|| type_name.to_owned()),
        ..FieldDescriptorProto::default()
    }
}

/// As protoc names the entries of maps.
pub(in crate::contract) fn camel_case(name: &str) -> String {
    let mut camel = String::with_capacity(name.len());
    let mut starts_word = true;
    for c in name.chars() {
        match c {
            '_' => starts_word = true,
            c if starts_word => {
                camel.push(c.to_ascii_uppercase());
                starts_word = false;
            }
            c => camel.push(c),
        }
    }
    camel
}

pub(in crate::contract) const SCALARS: [(&str, Type); 15] = [
    ("double", Type::Double),
    ("float", Type::Float),
    ("int32", Type::Int32),
    ("int64", Type::Int64),
    ("uint32", Type::Uint32),
    ("uint64", Type::Uint64),
    ("sint32", Type::Sint32),
    ("sint64", Type::Sint64),
    ("fixed32", Type::Fixed32),
    ("fixed64", Type::Fixed64),
    ("sfixed32", Type::Sfixed32),
    ("sfixed64", Type::Sfixed64),
    ("bool", Type::Bool),
    ("string", Type::String),
    ("bytes", Type::Bytes),
];
