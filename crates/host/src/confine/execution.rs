//! Becoming another program.

use std::ffi::{CStr, CString, OsStr, OsString, c_char};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::ptr;

#[cfg(target_os = "linux")]
unsafe extern "C" {
    /// The environment that this process was given, as `environ(7)` describes it.
    static environ: *const *const c_char;
}

#[cfg(target_os = "linux")]
fn environment() -> *const *const c_char {
    // SAFETY: the C library sets it before `main`, to a list that a null pointer ends; it may be null itself.
    unsafe { environ }
}

#[cfg(not(target_os = "linux"))]
fn environment() -> *const *const c_char {
    // SAFETY: gives the address of the same list, which is there from before `main` on.
    unsafe { *libc::_NSGetEnviron() as *const *const c_char }
}

/// A program to become, with everything that it is given.
pub struct Execution {
    program: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
}

impl Execution {
    /// `arguments` begins with the name that the program is told it has. The environment is the one of this process, less
    /// the variables whose names are `stripped`; nothing else about it is changed, not even what is no `NAME=value`.
    ///
    /// To be called while nothing changes the environment.
    ///
    /// # Errors
    /// When a NUL byte stands in the program's path or an argument.
    pub fn prepare(program: &OsStr, arguments: &[OsString], stripped: impl Fn(&[u8]) -> bool) -> io::Result<Self> {
        let text = |word: &OsStr| CString::new(word.as_bytes()).map_err(io::Error::from);
        Ok(Self {
            program: text(program)?,
            arguments: arguments.iter().map(|word| text(word)).collect::<io::Result<_>>()?,
            environment: given_environment().into_iter().filter(|entry| !stripped(name_of(entry))).collect(),
        })
    }

    /// Executes the program. Returns only when that failed.
    ///
    /// A broken pipe ends the program, as it ends any: Rust ignores that signal, and what is ignored stays so.
    #[must_use]
    pub fn run(&self) -> io::Error {
        // SAFETY: sets the default for one signal; no handler of ours is involved.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        let (arguments, environment) = (pointers(&self.arguments), pointers(&self.environment));
        // SAFETY: all three are NUL-terminated, the lists end with a null pointer, and they live until the call is over.
        unsafe { libc::execve(self.program.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
        io::Error::last_os_error()
    }
}

fn given_environment() -> Vec<CString> {
    let mut entries = Vec::new();
    let mut next = environment();
    // SAFETY: `next` is null or points into that list, at its end at the farthest, and nothing changes it meanwhile.
    while let Some(entry) = unsafe { next.as_ref() }.filter(|entry| !entry.is_null()) {
        // SAFETY: an entry that is not null is a NUL-terminated text.
        entries.push(unsafe { CStr::from_ptr(*entry) }.to_owned());
        // SAFETY: the entry was not the end, so there is a further one.
        next = unsafe { next.add(1) };
    }
    entries
}

fn name_of(entry: &CStr) -> &[u8] {
    entry.to_bytes().split(|byte| *byte == b'=').next().unwrap_or_default()
}

fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
}
