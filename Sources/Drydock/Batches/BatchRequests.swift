// The items of a program's batch as the batch engine asks for them.

import DownloadCore
import EventLoop
import FoundationEssentials
import HTTPTypes

/// Sendable: its members never change.
struct BatchQuestions: Sendable {
    /// For the engine, in the order given.
    let items: [BatchItem]
    /// Of each kind of item, by its number.
    private let questions: [Result<DownloadRequest, DownloadError>]
    private let engine: DownloadEngine

    init(_ items: [DownloadBatch.Item], _ engine: DownloadEngine) {
        var kinds: [DownloadBatch.Item: Int] = [:]
        var questions: [Result<DownloadRequest, DownloadError>] = []
        self.items = items.map { item in
            var plain = item
            // One resource may go to several files.
            if item.mayBeWritten { plain.file = nil }
            let kind = kinds[plain] ?? questions.count
            if kind == questions.count {
                kinds[plain] = kind
                questions.append(Self.question(plain, engine.configuration))
            }
            return BatchItem(
                url: item.text,
                method: item.request.method.rawValue,
                fields: item.request.headerFields.map { BatchItem.Field($0.name.rawName, $0.value) },
                body: item.body.map { Array($0) },
                force: item.options.forcesDownload,
                seed: item.options.usesSeeds,
                store: !item.options.bypassesStore,
                file: plain.file == nil ? item.file?.path(percentEncoded: false) : nil,
                kind: kind
            )
        }
        self.questions = questions
        self.engine = engine
    }

    /// - Parameter item: with a file only where nothing can be written to it.
    private static func question(
        _ item: DownloadBatch.Item,
        _ configuration: DownloadConfiguration
    ) -> Result<DownloadRequest, DownloadError> {
        Result { () throws(DownloadError) in
            if let file = item.file {
                let advice = item.request.method == .head ? "ask with GET for a body to write" : "name it by a file URL"
                throw .invalidRequest("'\(file)' cannot be written: \(advice)")
            }
            let question = try DownloadRequest(
                item.request,
                body: item.body.map { .data($0) },
                configuration,
                item.options
            )
            guard !question.isPassed else {
                throw .invalidRequest(
                    "a batch cannot contain \(item.request.method) \(item.request.text): it contains GET and HEAD, and POST "
                        + "in Mode.library; send others by download(_:body:)"
                )
            }
            return question
        }
    }

    /// Whether the file of an item gets decoded bytes.
    func isDecoded(_ item: BatchItem) -> Bool {
        guard let kind = item.kind, questions.indices.contains(kind) else { return false }
        return (try? questions[kind].get())?.isDecoded ?? false
    }

    /// - Throws: `BatchRefusal`: what cannot be asked for, or that the manager has been closed.
    func route(_ item: BatchItem, on loop: isolated EventLoop) throws(BatchRefusal) -> BatchRoute {
        guard let kind = item.kind, questions.indices.contains(kind) else {
            throw BatchRefusal("'\(item.url)' is not of this batch")
        }
        switch questions[kind] {
        case .success(let plain):
            let question = engine.identified(plain)
            var ask = question.ask(engine.configuration, seed: engine.seed)
            // Else the batch says how urgent its downloads are.
            if question.options.priority == nil { ask.urgency = nil }
            guard let source = engine.source(for: question, ask.policy, on: loop) else {
                throw BatchRefusal(DownloadError.closed.description)
            }
            return .store(ask, source)
        case .failure(let error): throw BatchRefusal(error.description)
        }
    }
}

extension DownloadBatch.Item {
    /// Whether there is a body, and a file that it can go to, or none is wanted.
    fileprivate var mayBeWritten: Bool {
        guard let file else { return true }
        return file.isFileURL && !file.hasDirectoryPath && request.method != .head
    }
}
