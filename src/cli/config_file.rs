//! The option that names the configuration file.

use std::path::PathBuf;

/// See the module.
#[derive(Debug, clap::Args)]
pub struct ConfigFile {
    /// The configuration file
    #[arg(
        short,
        long,
        env = "TRUELINE_CONFIG",
        value_name = "FILE",
        default_value = "trueline.toml"
    )]
    pub config: PathBuf,
}
