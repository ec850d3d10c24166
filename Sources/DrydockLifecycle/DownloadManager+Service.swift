// A download manager as one of the services that a program starts and ends together.

public import Drydock
public import ServiceLifecycle

extension DownloadManager: Service {
    /// Opens the manager, waits for the graceful shutdown of the group or for the end of the task, and closes the
    /// manager: what has come is stored then, and every thread has ended.
    ///
    /// Add the manager before the services that download with it: a group ends its services in the reverse order.
    /// - Throws: `DownloadError.unavailable` where the folder or a thread cannot be had, `.closed` after ``close()``.
    public func run() async throws {
        try await open()
        // A task that is cancelled is one more reason to end, and no failure.
        try? await gracefulShutdown()
        await close()
    }
}
