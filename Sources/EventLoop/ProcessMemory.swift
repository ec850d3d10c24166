// The memory of this process: how much is resident, and how freed memory returns to the kernel.

import CLinux
import Glibc

package enum ProcessMemory {
    /// Gives free pages of the heap back. Takes milliseconds for each hundred MiB: not on a loop.
    package static func giveBack() { c_linux_trim() }

    /// Lets the heap keep some freed memory: otherwise the pages of transfer buffers would return to the kernel and
    /// come back with each request. For the daemon's own process only.
    package static func keepSome() { c_linux_keep_freed(8 << 20, 1 << 20) }

    /// Resident bytes that no file of a disk backs (RssAnon, and RssShmem for ``MemoryFile``); 0 where the kernel does
    /// not say. Reads a file of /proc.
    package static var anonymous: Int {
        let file = open("/proc/self/status", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return 0 }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 8192)
        let count = read(file, &bytes, bytes.count)
        guard count > 0 else { return 0 }
        var sum = 0
        for line in String(decoding: bytes[..<count], as: UTF8.self).split(separator: "\n") {
            let words = line.split(whereSeparator: { $0 == " " || $0 == "\t" })
            guard words.count > 1, words[0] == "RssAnon:" || words[0] == "RssShmem:" else { continue }
            sum += (Int(words[1]) ?? 0) * 1024
        }
        return sum
    }
}
