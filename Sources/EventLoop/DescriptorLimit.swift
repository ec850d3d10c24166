// How many descriptors the process may have, for those that keep some of them open.

import Glibc

package enum DescriptorLimit {
    /// RLIMIT_NOFILE as it is now; 0 where the kernel does not say. Any thread.
    package static var current: Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 0 }
        return Int(clamping: limit.rlim_cur)
    }
}
