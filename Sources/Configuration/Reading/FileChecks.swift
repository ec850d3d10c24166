// Checks of the files and folders that a configuration names, made while it is read.

import EventLoop
import Files
import Glibc

enum FileChecks {
    /// The most bytes of a demo file, because demo answers are held in memory.
    static let largestDemoFile = 64 << 20

    /// The reason why a path cannot be, or become, a folder; nil if it can.
    static func canBeFolder(_ path: String) -> String? {
        let nearest = Ancestors.nearest(to: path) { path -> Kind? in
            let found = kind(path)
            return if case .absent = found { nil } else { found }
        }
        switch nearest?.found {
        case .folder, .absent, nil: return nil
        case .unknown(let error): return unknown(path, error)
        case .file, .special:
            let ancestor = nearest?.path ?? path
            return ancestor == path
                ? "\(path) is not a folder; choose another path"
                : "\(path) cannot be created, because \(ancestor) is not a folder"
        }
    }

    /// The reason why a path cannot be the folder of a daemon's store; nil if it can, or if this user may not read it,
    /// since the daemon may run as another user. The folder is not changed.
    static func canHoldStore(_ path: String) -> String? {
        if let problem = canBeFolder(path) { return problem }
        do throws(FolderError) { _ = try FolderMark.inspect(path, .shared) } catch {
            if case .notTaken(let refusal) = error { return "\(refusal)" }
        }
        return nil
    }

    /// The reason why a path is no folder at present; nil if it is one.
    static func isFolder(_ path: String) -> String? {
        switch kind(path) {
        case .folder: nil
        case .absent: "\(path) does not exist; create the folder, or correct the path"
        case .file, .special: "\(path) is not a folder; correct the path"
        case .unknown(let error): unknown(path, error)
        }
    }

    /// The reason why a path cannot be opened for appending; nil if it can.
    static func canBeFile(_ path: String) -> String? {
        if case .folder = kind(path) { return "\(path) is a folder; name a file in it" }
        switch kind(Ancestors.parent(of: path)) {
        case .folder: return nil
        case .unknown(let error): return unknown(path, error)
        default:
            let folder = Ancestors.parent(of: path)
            return "\(path) cannot be created, because its folder does not exist; create \(folder)"
        }
    }

    /// The reason why a path cannot be read as a file of at most `limit` bytes; nil if it can.
    static func readable(_ path: String, atMost limit: Int? = nil) -> String? {
        switch kind(path) {
        case .absent: return "\(path) does not exist; create the file, or correct the path"
        case .folder: return "\(path) is a folder; name a file in it"
        case .special: return "\(path) is not a regular file; name a regular file"
        case .unknown(let error): return unknown(path, error)
        case .file:
            guard access(path, R_OK) == 0 else {
                return "\(path) cannot be read; change its permissions"
            }
            var status = stat()
            guard let limit, stat(path, &status) == 0, status.st_size > limit else { return nil }
            return "\(path) has \(status.st_size) bytes, but the limit is \(Units.sizeText(limit)); make it smaller"
        }
    }

    /// Why a file is not fit for a secret: every user can read it. Nil if they cannot.
    /// - Returns: what is wrong, and whether its mount is read-only, so that nobody can change it.
    static func openToAll(_ path: String) -> (message: String, isFixed: Bool)? {
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & S_IROTH != 0 else { return nil }
        var mount = statvfs()
        let isFixed = statvfs(path, &mount) == 0 && mount.f_flag & UInt(ST_RDONLY) != 0
        return ("can be read by every user of this machine: \(path); write chmod 600 \(path)", isFixed)
    }

    static func exists(_ path: String) -> Bool {
        if case .absent = kind(path) { false } else { true }
    }

    private static func unknown(_ path: String, _ error: SystemError) -> String {
        "\(path) cannot be looked at (\(error.reason)); correct the path, or its permissions"
    }

    private enum Kind {
        case absent, file, folder
        /// A socket, a pipe or a device.
        case special
        /// The system reports an error instead of the kind of file.
        case unknown(SystemError)
    }

    private static func kind(_ path: String) -> Kind {
        var status = stat()
        guard stat(path, &status) == 0 else {
            return errno == ENOENT || errno == ENOTDIR ? .absent : .unknown(SystemError("stat \(path)"))
        }
        switch status.st_mode & S_IFMT {
        case S_IFDIR: return .folder
        case S_IFREG: return .file
        default: return .special
        }
    }
}
