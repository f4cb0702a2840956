//! Takes the terminal over as the console does, and panics: in a further thread when it is told so. For the test that the
//! terminal is given back.

use cli::console::Screen;

fn main() -> std::io::Result<()> {
    let screen = Screen::take()?;
    let further = std::env::args().nth(1).is_some_and(|argument| argument == "thread");
    if further {
        // The screen is still taken when the thread panics.
        let ended = std::thread::spawn(fail).join();
        drop(screen);
        assert!(ended.is_err(), "the thread did not panic");
    } else {
        fail();
    }
    Ok(())
}

#[expect(clippy::panic, reason = "this is what it is for")]
fn fail() {
    panic!("the words of the panic");
}
