// Numbers as the command line prints them.

import DrydockDaemon

/// Numbers as people read them.
enum Format {
    static func size(_ bytes: Int) -> String { BatchProgress.size(Int64(bytes)) }

    static func duration(_ seconds: Int) -> String {
        switch seconds {
        case ..<120: "\(seconds)s"
        case ..<7200: "\(seconds / 60)m"
        case ..<172_800: "\(seconds / 3600)h"
        default: "\(seconds / 86400)d"
        }
    }
}
