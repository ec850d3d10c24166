// A download that memory answers at once: on the thread of the task that asks, without a loop.

import DownloadCore
import FoundationEssentials
import HTTPCaching
import HTTPWire

/// What memory has for a question that asks for nothing unusual: the same as the waiting path would bring.
struct MemoryHit {
    let answer: Answer
    /// The digest of its owner; nil if it is nobody's.
    let holder: String?
    let data: Data

    private static let guarded = FieldSet(.authorization, .cookie)

    /// - Returns: nil where the waiting path has to decide, which may find the same.
    init?(_ question: DownloadRequest, _ engine: DownloadEngine) {
        // The waiting path says of a cancelled task that it is cancelled, and looks into seeds first.
        guard question.isPlain, engine.seed == nil, !Task.isCancelled else { return nil }
        let question = engine.identified(question)
        // In a shared cache the rules have to look at what is stored for others.
        guard !engine.configuration.isShared || question.seen.present.isDisjoint(with: Self.guarded),
            let ready = ReadyAnswer(to: question.key, question.seen, as: question.headFormatID, from: engine.core),
            !ready.answer.head.fields.contains(.contentEncoding),
            ready.count <= engine.configuration.maximumBody
        else { return nil }
        answer = ready.answer
        holder = question.identity?.holder
        data = ready.withBody { Data($0) }
    }
}

extension DownloadRequest {
    /// A GET that is asked as the manager asks, with no field that decides about reuse.
    fileprivate var isPlain: Bool {
        method == .get && content == nil && !isPassed && hasPlainOptions
            && fields.present.isDisjoint(with: HotPathWindow.disqualifying)
    }

    /// Names the policy that a stored response was prepared under: wishes of one download, such as a lifetime of its
    /// own, may make it another one, which memory does not answer at once.
    var headFormatID: UInt64 { hasPlainOptions ? 1 : 2 }

    private var hasPlainOptions: Bool {
        var options = options
        // It changes what comes before the result, and not the result.
        options.yieldsStaleFirst = false
        return options == DownloadOptions()
    }
}
