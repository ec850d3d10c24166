// A request whose content is sent, as two kinds of events: what of it is out, and then its response.

/// A request under way whose content is sent: what of it is out, and then its response. It is given up with the last
/// reference to this.
final class MeteredAsking: Sendable {
    enum Event {
        case uploaded(DownloadProgress)
        case asked(Result<DownloadSession.Head, DownloadError>)
    }

    private let meter = UploadMeter()
    private let task: Task<Result<DownloadSession.Head, DownloadError>, Never>

    init(_ session: DownloadSession) {
        let meter = meter
        task = Task {
            defer { meter.finish() }
            do throws(DownloadError) {
                return .success(try await session.ask(meter: meter))
            } catch {
                return .failure(error)
            }
        }
    }

    deinit { task.cancel() }

    /// The next event; the response is the last one.
    func next() async -> Event {
        var changes = meter.changes.makeAsyncIterator()
        if await changes.next() != nil { return .uploaded(meter.progress) }
        return await withTaskCancellationHandler {
            .asked(await task.value)
        } onCancel: {
            task.cancel()
        }
    }
}
