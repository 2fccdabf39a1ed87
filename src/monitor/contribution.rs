//! What one partition contributes to a monitor that is rebuilt.

use super::activity::{Activity, StreamActivity};
use super::retained::PartitionWindows;
use super::views::VersionName;

/// See the module.
pub struct Contribution<'a> {
    /// Up to where its models are sealed.
    pub sealed_until_ms: Vec<i64>,
    /// Its streams.
    pub streams: Vec<StreamActivity<'a>>,
    /// Its versions with vector views.
    pub versions: Vec<Activity<VersionName<'a>>>,
    /// Its windows.
    pub windows: &'a PartitionWindows,
}
