//! The system calls that are refused, and under which arguments.

use std::collections::BTreeSet;

use serde::Deserialize;

/// Names of argument values, as the kernel's headers spell them. All are the same on every supported architecture.
const NAMED: &[(&str, u32)] = &[
    ("CLONE_NEWNS", 0x0002_0000),
    ("CLONE_NEWCGROUP", 0x0200_0000),
    ("CLONE_NEWUTS", 0x0400_0000),
    ("CLONE_NEWIPC", 0x0800_0000),
    ("CLONE_NEWUSER", 0x1000_0000),
    ("CLONE_NEWPID", 0x2000_0000),
    ("CLONE_NEWNET", 0x4000_0000),
    ("TIOCSTI", 0x5412),
    ("TIOCLINUX", 0x541C),
    ("AF_UNIX", 1),
    ("AF_INET", 2),
    ("AF_INET6", 10),
    ("AF_NETLINK", 16),
];

/// A system call has six arguments.
const LAST_ARGUMENT: u8 = 5;

/// `seccomp.json`: whatever no rule refuses is allowed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallPolicy {
    v: u32,
    /// The rules, in no order that matters.
    pub rules: Vec<CallRule>,
}

/// Calls that are refused for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallRule {
    /// Names of system calls. One that an architecture does not have is not refused there.
    pub calls: Vec<String>,
    /// What the refused call fails with.
    pub errno: Errno,
    /// Refused only when this holds; always when absent.
    pub when: Option<Condition>,
    /// Why.
    pub reason: String,
}

/// An error number of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Errno {
    /// Operation not permitted.
    Eperm,
    /// No such system call.
    Enosys,
    /// No such address family.
    Eafnosupport,
}

impl Errno {
    /// The number, the same on every supported architecture.
    #[must_use]
    pub const fn number(self) -> i32 {
        match self {
            Self::Eperm => 1,
            Self::Enosys => 38,
            Self::Eafnosupport => 97,
        }
    }
}

/// A statement about the low 32 bits of one argument: the kernel reads no more of those that rules speak of, so what
/// stands above them must not make a difference.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// Which argument, from 0.
    pub argument: u8,
    /// What must hold of it.
    #[serde(flatten)]
    pub test: Test,
}

/// What a condition looks for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Test {
    /// At least one of these bits is set.
    HasAnyOf(Vec<Value>),
    /// It is one of these.
    IsAnyOf(Vec<Value>),
    /// It is none of these.
    IsNoneOf(Vec<Value>),
}

/// A number, or the name of one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// As it is.
    Number(u32),
    /// As the kernel's headers spell it.
    Name(String),
}

impl Value {
    /// What it stands for; `None` for an unknown name.
    #[must_use]
    pub fn number(&self) -> Option<u32> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Name(name) => NAMED.iter().find(|(known, _)| known == name).map(|(_, number)| *number),
        }
    }
}

/// One comparison of the low 32 bits of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// Equal to the value.
    Equal(u32),
    /// Not equal to the value.
    NotEqual(u32),
    /// All bits of the value are set.
    AllSet(u32),
}

impl Condition {
    /// The same in the form that filters are made of: it holds when all comparisons of at least one alternative hold.
    #[must_use]
    pub fn alternatives(&self) -> Vec<Vec<Comparison>> {
        let numbers = |values: &[Value]| values.iter().filter_map(Value::number).collect::<Vec<u32>>();
        match &self.test {
            Test::HasAnyOf(bits) => numbers(bits).into_iter().map(|bit| vec![Comparison::AllSet(bit)]).collect(),
            Test::IsAnyOf(values) => numbers(values).into_iter().map(|value| vec![Comparison::Equal(value)]).collect(),
            Test::IsNoneOf(values) => vec![numbers(values).into_iter().map(Comparison::NotEqual).collect()],
        }
    }

    fn check(&self) -> Result<(), String> {
        let (values, bits) = match &self.test {
            Test::HasAnyOf(values) => (values, true),
            Test::IsAnyOf(values) | Test::IsNoneOf(values) => (values, false),
        };
        if self.argument > LAST_ARGUMENT {
            return Err(format!("there is no argument {}", self.argument));
        }
        if values.is_empty() {
            return Err("a condition names no value".to_owned());
        }
        for value in values {
            match value.number() {
                None => return Err(format!("{value:?} is not a known name")),
                Some(number) if bits && number.count_ones() != 1 => return Err(format!("{value:?} is not one bit")),
                Some(_) => {}
            }
        }
        Ok(())
    }
}

impl CallPolicy {
    /// Reads and checks the text of a policy file.
    ///
    /// # Errors
    /// The first fault, in words.
    pub fn parse(text: &str) -> Result<Self, String> {
        let policy: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        super::check_format(policy.v)?;
        let mut seen = BTreeSet::new();
        for rule in &policy.rules {
            super::check_reason(&rule.reason)?;
            rule.when.as_ref().map_or(Ok(()), Condition::check)?;
            if rule.calls.is_empty() {
                return Err("a rule names no call".to_owned());
            }
            // Two rules on one call could disagree on the error, and the order of filters would decide.
            if let Some(twice) = rule.calls.iter().find(|call| !seen.insert(call.as_str())) {
                return Err(format!("{twice} stands twice"));
            }
        }
        Ok(policy)
    }
}
