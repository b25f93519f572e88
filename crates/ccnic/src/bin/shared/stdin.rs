//! The end of a program whose parent ended, also by kill -9: the parent holds the other end of its standard input.

use std::io::{copy, sink, stdin};

use ccnic::Error;

/// Calls `end` and leaves the program once standard input is closed.
pub fn end_with(end: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    std::thread::Builder::new().name("stdin".into()).spawn(move || {
        // An input that cannot be read has ended, too.
        let _ = copy(&mut stdin(), &mut sink());
        end();
        std::process::exit(0);
    })?;
    Ok(())
}
