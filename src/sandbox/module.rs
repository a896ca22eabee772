//! Reads a file of functions that an author of a scene wrote, in a worker, and executes nothing of it: whether the interpreter
//! takes it, what it defines and imports, and which attributes it reads of names that it does not define.

use std::collections::BTreeSet;

use monty::MontyRun;
use monty_types::{CompileOptions, MontyException};
use ruff_python_ast::token::TokenKind;
use ruff_python_ast::visitor::{Visitor, walk_expr, walk_parameter, walk_stmt};
use ruff_python_ast::{Expr, ExprContext, Parameter, Stmt, StmtFunctionDef};
use ruff_python_parser::{Mode, lexer, parse_module};

use super::protocol::MAX_SOURCE_BYTES;
use super::source::{asynchronous, line_at};
use crate::program::module::{
    AttributeUse, FunctionParameter, ModuleFunction, ModuleImport, ModuleProblem, PythonModule, ReadModule,
};

/// How deep an expression of a file may be: the words in a row that no comma separates, of all brackets around it together, and
/// the lambdas before them. There are 32 kB of a worker's stack for each: parsers are recursive.
const MAX_DEPTH: usize = 2_000;

/// The problem with a file that is too large to be read.
pub(super) fn check_size(source: &str) -> Result<(), ModuleProblem> {
    if source.len() <= MAX_SOURCE_BYTES {
        return Ok(());
    }
    let message = format!("the file has {} bytes; at most {MAX_SOURCE_BYTES} are allowed", source.len());
    Err(ModuleProblem { line: None, message })
}

/// Reads what a file has, or why the interpreter does not take it. Only for a worker: a file may end the process that reads it.
pub(super) fn read(source: &str) -> ReadModule {
    check_size(source)?;
    check_depth(source)?;
    if let Some((word, line)) = asynchronous(source) {
        let message =
            format!("`{word}` is not available: call functions one after the other, without `await`");
        return Err(ModuleProblem { line: Some(line), message });
    }
    MontyRun::new(source.to_owned(), "tools.py", Vec::new(), CompileOptions::default())
        .map_err(|error| problem_of(&error))?;
    let parsed = parse_module(source).map_err(|error| ModuleProblem {
        line: Some(line_at(source, error.location.start().into())),
        message: error.error.to_string(),
    })?;
    let mut reader = ModuleReader { source, module: PythonModule::default(), bound: BTreeSet::new() };
    for statement in &parsed.syntax().body {
        if let Stmt::FunctionDef(function) = statement {
            let function = reader.function(function);
            reader.module.functions.push(function);
        }
        reader.visit_stmt(statement);
    }
    let ModuleReader { mut module, bound, .. } = reader;
    module.uses.retain(|found| !bound.contains(&found.object));
    Ok(module)
}

/// Finds what could be nested too deeply for a parser. This is not recursive.
fn check_depth(source: &str) -> Result<(), ModuleProblem> {
    if !is_too_deep(source) {
        return Ok(());
    }
    // Words have no places here: it is on the first line with which the file is too deep.
    let ends: Vec<usize> = source.match_indices('\n').map(|(at, _)| at + 1).chain([source.len()]).collect();
    let line = ends.partition_point(|end| !source.get(..*end).is_some_and(is_too_deep));
    let message = format!("an expression is longer or deeper than {MAX_DEPTH} words: split it");
    Err(ModuleProblem { line: u32::try_from(line + 1).ok(), message })
}

fn is_too_deep(source: &str) -> bool {
    let mut words = lexer::lex(source, Mode::Module);
    // The words in a row of each bracket that is open, and its lambdas: a comma between their parameters ends nothing.
    let mut open = vec![[0_usize; 2]];
    let mut depth = 0;
    // Each word takes a byte of the source, but for the ends of blocks, which begin with one.
    for _ in 0..2 * source.len() + 16 {
        let word = words.next_token();
        match word {
            TokenKind::EndOfFile => break,
            TokenKind::Comma => {
                depth -= open.last_mut().map(|[row, _]| std::mem::take(row)).unwrap_or_default();
            }
            TokenKind::Newline | TokenKind::Semi => {
                depth -= open.last_mut().map(std::mem::take).unwrap_or_default().iter().sum::<usize>();
            }
            TokenKind::Rpar | TokenKind::Rsqb | TokenKind::Rbrace if open.len() > 1 => {
                depth -= open.pop().unwrap_or_default().iter().sum::<usize>();
            }
            TokenKind::Comment | TokenKind::NonLogicalNewline => {}
            _ => {
                let is_lambda = word == TokenKind::Lambda;
                if let Some(last) = open.last_mut() {
                    last[usize::from(is_lambda)] += 1;
                    depth += 1;
                }
                if matches!(word, TokenKind::Lpar | TokenKind::Lsqb | TokenKind::Lbrace) {
                    open.push([0; 2]);
                }
            }
        }
        if depth > MAX_DEPTH {
            return true;
        }
    }
    false
}

fn problem_of(error: &MontyException) -> ModuleProblem {
    let line = error.traceback().last().map(|frame| frame.start.line);
    ModuleProblem { line, message: error.summary() }
}

/// Walks over the statements of a file.
struct ModuleReader<'s> {
    source: &'s str,
    module: PythonModule,
    /// The names that the file gives something, wherever it does.
    bound: BTreeSet<String>,
}

impl ModuleReader<'_> {
    fn function(&self, function: &StmtFunctionDef) -> ModuleFunction {
        let all = &function.parameters;
        let named = all.args.iter().chain(&all.kwonlyargs).map(|parameter| FunctionParameter {
            name: parameter.parameter.name.id.to_string(),
            is_optional: parameter.default.is_some(),
        });
        ModuleFunction {
            name: function.name.id.to_string(),
            line: line_at(self.source, function.name.range.start().into()),
            parameters: named.collect(),
            takes_others: !all.posonlyargs.is_empty() || all.vararg.is_some() || all.kwarg.is_some(),
        }
    }

    fn import(&mut self, module: String, at: usize) {
        let line = line_at(self.source, at);
        self.module.imports.push(ModuleImport { module, line });
    }
}

impl<'a> Visitor<'a> for ModuleReader<'_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Import(import) => {
                for alias in &import.names {
                    self.import(alias.name.id.to_string(), alias.range.start().into());
                    self.bound.insert(alias.asname.as_ref().unwrap_or(&alias.name).id.to_string());
                }
            }
            Stmt::ImportFrom(import) => {
                let name = import.module.as_ref().map(|module| module.id.to_string()).unwrap_or_default();
                let dots = ".".repeat(usize::try_from(import.level).unwrap_or_default());
                self.import(format!("{dots}{name}"), import.range.start().into());
                for alias in &import.names {
                    self.bound.insert(alias.asname.as_ref().unwrap_or(&alias.name).id.to_string());
                }
            }
            Stmt::FunctionDef(function) => {
                self.bound.insert(function.name.id.to_string());
            }
            Stmt::ClassDef(class) => {
                self.bound.insert(class.name.id.to_string());
            }
            _ => {}
        }
        walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::Name(name) if matches!(name.ctx, ExprContext::Store) => {
                self.bound.insert(name.id.to_string());
            }
            Expr::Attribute(read) => {
                if let Expr::Name(name) = &*read.value {
                    self.module.uses.push(AttributeUse {
                        object: name.id.to_string(),
                        attribute: read.attr.id.to_string(),
                        line: line_at(self.source, read.attr.range.start().into()),
                    });
                }
            }
            _ => {}
        }
        walk_expr(self, expression);
    }

    fn visit_parameter(&mut self, parameter: &'a Parameter) {
        self.bound.insert(parameter.name.id.to_string());
        walk_parameter(self, parameter);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::worker::STACK_BYTES;
    use super::*;

    /// Reads a file on a thread with the stack of a worker's.
    pub(in crate::sandbox) fn read_here(source: &str) -> ReadModule {
        std::thread::scope(|scope| {
            let reader = std::thread::Builder::new().stack_size(STACK_BYTES);
            reader.spawn_scoped(scope, || read(source)).unwrap().join().unwrap()
        })
    }

    #[test]
    fn file_is_read_without_being_executed() {
        let source = "import math\nfrom os import path as p\n1 / 0\n\
            def price(sku, *, count=1):\n    tables = 1\n    import re\n    return tool.refuse(sku)\n\
            def helper(a, /, *args, **more):\n    return tables.find(a)\n\
            if True:\n    def inner():\n        pass\n";
        let module = read_here(source).unwrap();
        let lines: Vec<(&str, u32)> =
            module.imports.iter().map(|import| (import.module.as_str(), import.line)).collect();
        assert_eq!(lines, [("math", 1), ("os", 2), ("re", 6)]);
        let [price, helper] = module.functions.as_slice() else { panic!("{:?}", module.functions) };
        assert_eq!((price.name.as_str(), price.line, price.takes_others), ("price", 4, false));
        let parameters: Vec<(&str, bool)> =
            price.parameters.iter().map(|one| (one.name.as_str(), one.is_optional)).collect();
        assert_eq!(parameters, [("sku", false), ("count", true)]);
        assert!(helper.takes_others);
        // `tables` has a value of the file's own.
        let uses: Vec<String> = module
            .uses
            .iter()
            .map(|found| format!("{}: {}.{}", found.line, found.object, found.attribute))
            .collect();
        assert_eq!(uses, ["7: tool.refuse"]);
    }

    #[test]
    fn file_that_the_interpreter_does_not_take_is_a_problem_with_its_line() {
        for (source, line) in [
            ("x = 1\ndef f(:\n    pass\n", Some(2)),
            ("\nasync def f():\n    pass\n", Some(2)),
            ("x = 1\n\ndef f():\n    yield 1\n", Some(4)),
            (&"#".repeat(MAX_SOURCE_BYTES + 1), None),
        ] {
            let problem = read_here(source).unwrap_err();
            assert_eq!(problem.line, line, "{problem:?}");
        }
    }

    #[test]
    fn deepest_files_that_fit_do_no_harm() {
        let length = MAX_SOURCE_BYTES - 16;
        let deep = [
            "1+", "1+\n", "a.", "-", "(", "[", "{1:", "lambda:", "f()if f()else ", "2**", "not ", "f(1)(",
            "f\"{", "x[", "await ", "1 and ", "1<",
        ];
        for part in deep {
            for (before, after) in [("x = (", "1)"), ("def f(a=", "1):\n    pass")] {
                let source = format!("{before}{}{after}", part.repeat((length - 32) / part.len()));
                assert!(read_here(&source).is_err(), "{before}{part}");
            }
        }
        for (first, part, last) in [
            ("x = ", "lambda a,b:", "1"),
            ("def f(x=", "lambda a=1,b=2:", "1):\n    pass"),
            ("if a:\n x\n", "elif a:\n x\n", ""),
            ("", "@a\n", "def f():\n    pass"),
            ("try:\n x\n", "except E:\n x\n", ""),
            ("", "x=1\n", ""),
        ] {
            // Some are taken, and some are not.
            let _ = read_here(&format!("{first}{}{last}\n", part.repeat((length - 64) / part.len())));
        }
        let deep = format!("x = 1\ny = \"\"\"\n\"\"\"\nz = [\n    1,\n    {}1,\n]\n", "-".repeat(3_000));
        assert_eq!(read_here(&deep).unwrap_err().line, Some(6));
        let blocks: String = (0..300).map(|depth| format!("{}if 1:\n", " ".repeat(depth))).collect();
        assert!(read_here(&format!("{blocks}{}1", " ".repeat(300))).is_err());
        let rows = "    [1, 'a', {'b': -2.5}],\n".repeat(2_000);
        assert!(read_here(&format!("x = [\n{rows}]\n")).is_ok());
    }
}
