//! The address of a running trueline, for the verbs that ask one.

/// Options shared by all verbs that ask a running trueline.
#[derive(Debug, clap::Args)]
pub struct Service {
    /// Address of the running trueline
    #[arg(
        long,
        env = "TRUELINE_URL",
        value_name = "URL",
        default_value = "http://127.0.0.1:9464"
    )]
    pub url: String,
}
