// The folders above a file, made if they are missing.

package import Glibc

package enum Folders {
    /// Makes a folder and those above it; one that exists stays as it is. It blocks, so it must not be called on a
    /// loop.
    /// - Parameter mode: its permissions, before the umask; those above it get the same.
    /// - Throws: the system's error, with the folder.
    package static func make(_ path: String, mode: mode_t) throws(SystemError) {
        do throws(SystemError) {
            try makeLast(path, mode: mode)
        } catch {
            guard error.code == ENOENT, let above = above(path) else { throw error }
            try make(above, mode: mode)
            try makeLast(path, mode: mode)
        }
    }

    /// Makes a folder, but none above it: if one of them is missing, the call fails. It is for a store's folder, which
    /// has to be marked before anything else is made in it.
    package static func makeLast(_ path: String, mode: mode_t) throws(SystemError) {
        if mkdir(path, mode) == 0 { return }
        let code = errno
        // Another process may have made the folder meanwhile; a file of that name is not one.
        if code == EEXIST, isFolder(path) { return }
        throw SystemError("mkdir \(path)", code: code == EEXIST ? ENOTDIR : code)
    }

    /// The path of the folder above; nil if the path has one component.
    private static func above(_ path: String) -> String? {
        let parts = path.split(separator: "/")
        guard parts.count > 1 else { return nil }
        return (path.hasPrefix("/") ? "/" : "") + parts.dropLast().joined(separator: "/")
    }

    private static func isFolder(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }
}
