// The items of a program's batch as the batch engine asks for them.

import DownloadCore
import EventLoop
import HTTPTypes

/// Sendable: its members never change.
struct BatchQuestions: Sendable {
    /// For the engine, in the order given.
    let items: [BatchItem]
    private let questions: [String: Result<DownloadRequest, DownloadError>]
    private let engine: DownloadEngine

    init(_ items: [DownloadBatch.Item], _ engine: DownloadEngine) {
        var questions: [String: Result<DownloadRequest, DownloadError>] = [:]
        self.items = items.map { item in
            let fields = item.request.headerFields.map { BatchItem.Field($0.name.rawName, $0.value) }
            let options = item.options
            let asked = BatchItem(
                url: item.text,
                method: item.request.method.rawValue,
                fields: fields,
                force: options.forcesDownload,
                seed: options.usesSeeds,
                store: !options.bypassesStore
            )
            // Of equal items the first counts: the engine takes the others for its duplicates.
            let name = Self.name(asked)
            if questions[name] == nil {
                questions[name] = Result { () throws(DownloadError) in
                    try DownloadRequest(item.request, engine.configuration, options)
                }
            }
            return asked
        }
        self.questions = questions
        self.engine = engine
    }

    private static func name(_ item: BatchItem) -> String {
        let fields = item.fields.map { "\($0.name): \($0.value)" }
        let lines = ["\(item.method) \(item.url) \(item.force) \(item.seed) \(item.store)"] + fields
        return lines.joined(separator: "\n")
    }

    /// - Throws: `BatchRefusal`: what cannot be asked for, or that the manager has been closed.
    func route(_ item: BatchItem, on loop: isolated EventLoop) throws(BatchRefusal) -> BatchRoute {
        switch questions[Self.name(item)] {
        case .success(let question):
            var ask = question.ask(engine.configuration, seed: engine.seed)
            // Else the batch says how urgent its downloads are.
            if question.options.priority == nil { ask.urgency = nil }
            guard let source = engine.source(for: question, ask.policy, on: loop) else {
                throw BatchRefusal(DownloadError.closed.description)
            }
            return .store(ask, source)
        case .failure(let error): throw BatchRefusal(error.description)
        case nil: throw BatchRefusal("'\(item.url)' is not of this batch")
        }
    }
}
