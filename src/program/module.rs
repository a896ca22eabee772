//! The outline of a Python file, known without executing it.

use serde::{Deserialize, Serialize};

/// The outline of a file, or why the interpreter does not take it.
pub type ReadModule = Result<PythonModule, ModuleProblem>;

/// A file of functions that an author of a scene wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PythonModule {
    /// The functions that it defines at its top level, in their order.
    pub functions: Vec<ModuleFunction>,
    /// Its imports.
    pub imports: Vec<ModuleImport>,
    /// The attributes that it reads of names that it does not define itself, such as `tables.find`.
    pub uses: Vec<AttributeUse>,
}

/// A function that a file defines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModuleFunction {
    /// Its name.
    pub name: String,
    /// The line of its definition, from 1.
    pub line: u32,
    /// The parameters that can be given by name.
    pub parameters: Vec<FunctionParameter>,
    /// Whether it also takes arguments that cannot be given by name, or others than these: `*args`, `**kwargs`, `/`.
    pub takes_others: bool,
}

/// A parameter of a function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FunctionParameter {
    /// Its name.
    pub name: String,
    /// Whether it has a default.
    pub is_optional: bool,
}

/// An import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModuleImport {
    /// The module as it is written, with leading dots.
    pub module: String,
    /// Its line, from 1.
    pub line: u32,
}

/// An attribute that is read of a name: `object.attribute`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttributeUse {
    /// The name.
    pub object: String,
    /// The attribute.
    pub attribute: String,
    /// Its line, from 1.
    pub line: u32,
}

/// Why the interpreter does not take a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModuleProblem {
    /// The line, from 1, where it is known.
    pub line: Option<u32>,
    /// The problem.
    pub message: String,
}
