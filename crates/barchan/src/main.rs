//! The command `barchan`.

fn main() -> std::process::ExitCode {
    barchan::command::main(std::env::args_os())
}
