// Numbers as the command line prints them.

import DrydockDaemon

/// Numbers as people read them.
enum Format {
    static func size(_ bytes: Int) -> String { BatchProgress.size(Int64(bytes)) }

    /// With a digit behind the point, rounded down.
    static func milliseconds(_ nanoseconds: UInt64) -> String {
        let tenths = nanoseconds / 100_000
        return "\(tenths / 10).\(tenths % 10)ms"
    }

    static func duration(_ seconds: Int) -> String {
        switch seconds {
        case ..<120: "\(seconds)s"
        case ..<7200: "\(seconds / 60)m"
        case ..<172_800: "\(seconds / 3600)h"
        default: "\(seconds / 86400)d"
        }
    }
}
