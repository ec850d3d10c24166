// All the bytes of a file, or why the system does not give them.

internal import EventLoop
internal import Glibc

/// Its functions block: they are not called on a loop.
enum WholeFile {
    static func read(_ path: String) throws(SystemError) -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw SystemError("open \(path)") }
        defer { close(descriptor) }
        return try rest(of: descriptor, path)
    }

    /// What comes until the end.
    /// - Parameter name: what an error calls it.
    static func rest(of descriptor: Int32, _ name: String) throws(SystemError) -> [UInt8] {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65536)
        while true {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            if count == 0 { return bytes }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw SystemError("read \(name)") }
            bytes += buffer[..<count]
        }
    }
}
