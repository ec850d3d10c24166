// The words for a store's owner and settings in reports: a program that uses the library has no configuration file.

import Files

extension StoreKind {
    var owner: String {
        switch self {
        case .shared: "the daemon"
        case .private: "the program"
        }
    }

    /// The limit of all files.
    var size: String {
        switch self {
        case .shared: "cache.disk.size"
        case .private: "DiskStore.size"
        }
    }

    /// What stays free on the file system.
    var minFree: String {
        switch self {
        case .shared: "cache.disk.min_free"
        case .private: "DiskStore.minimumFree"
        }
    }

    /// The advice for what to use instead of removing files from the folder.
    var insteadOfRemoving: String {
        switch self {
        case .shared: "use 'drydock purge --all' to empty a cache, and stop the daemon before its folder is removed"
        case .private: "use removeAll() to empty a store, and close the manager before its folder is removed"
        }
    }
}
