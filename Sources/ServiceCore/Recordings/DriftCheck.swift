// Whether an origin still answers as it was recorded.

import DownloadCore
package import EventLoop
import HTTPWire
import Policies

/// What became of the check of one recording.
package enum DriftOutcome: Sendable, Equatable {
    /// The origin says or shows that its answer is the recorded one.
    case same
    case changed(RecordingDrift)
    /// The origin has nothing there any more, with this status.
    case gone(Int)
    /// It did not answer, for this reason.
    case unreachable(String)
    /// It was not asked, for this reason.
    case leftOut(String)
}

/// Asks origins about recordings. Loop-bound, as the services are; for the length of one question.
package struct DriftCheck {
    private let services: ServiceClient

    package init(_ services: ServiceClient) { self.services = services }

    /// Asks the origin of a call whether a recording still is its answer: by the recording's validator where it has one,
    /// otherwise by a comparison. No cache on the way answers for the origin.
    /// - Parameters:
    ///   - call: a GET.
    ///   - folder: the absolute path of the folder that the recording is in.
    ///   - names: of fields that are compared, besides those that always are.
    /// - Returns: nil where the recording does not answer the call.
    package func outcome(
        of recording: Recording,
        in folder: String,
        for call: ServiceCall,
        comparing names: [String],
        on loop: isolated EventLoop
    ) async -> DriftOutcome? {
        guard let plan = call.match.endpoint.request.recordings, plan.folder.path == folder,
            let (key, path) = RecordedCall.key(of: call, plan.rules), key == recording.key
        else { return nil }
        guard let source = try? services.singleSource(of: call) else {
            return .leftOut("service \(call.match.route.plan.name) asks no origin for it")
        }
        if services.core.isOffline, source.opensSockets {
            return .unreachable("it is for the origin to answer, \(FetchError.offlineAdvice)")
        }
        let host = call.head.fields.first(.host)
        var request = FetchRequest(method: .get, path: path, fields: call.originFields, clientHost: host)
        for pair in recording.vary ?? [] where pair.count == 2 {
            if pair[1] == Redaction.mark { return .leftOut("its answer depends on \(pair[0]), which no recording has") }
            request.fields.set(pair[0], pair[1])
        }
        request.prepareForRecording()
        request.fields.set(.cacheControl, "no-cache")
        request.urgency = FetchUrgency(.sizeCheck)
        let asksForChange = request.addConditions(of: recording)
        return await Self.outcome(recording, request, asksForChange, source, plan, comparing: names, on: loop)
    }

    private static func outcome(
        _ recording: Recording,
        _ request: FetchRequest,
        _ asksForChange: Bool,
        _ source: any FetchSource,
        _ plan: RecordingPlan,
        comparing names: [String],
        on loop: isolated EventLoop
    ) async -> DriftOutcome {
        let answer: WholeAnswer.Answer
        do throws(FetchError) {
            answer = try await WholeAnswer.fetch(request, from: source, atMost: plan.rules.maximumSize, on: loop)
        } catch {
            return .unreachable(error.told)
        }
        let status = answer.head.status
        if asksForChange, status == 304 { return .same }
        if status == 404 || status == 410, status != recording.status { return .gone(status) }
        // A server that fails, or refuses for now, has said nothing of what it has.
        if status >= 500 || status == 429, status != recording.status {
            return .unreachable("the status is \(status)")
        }
        let drift = RecordingDrift(
            of: recording,
            answer.head,
            answer.content,
            plan.rules,
            plan.secrets,
            fields: names
        )
        return drift.isEmpty ? .same : .changed(drift)
    }
}

@available(*, unavailable) extension DriftCheck: Sendable {}

enum RecordedCall {
    /// What a call without content is recorded under, and its path and query on the origin; nil where its request would
    /// be refused.
    static func key(of call: ServiceCall, _ rules: RecordingRules) -> (key: RecordingKey, path: String)? {
        let match = call.match
        guard (try? ServiceClient.admit(call.head, match.rest, match.route)) != nil, let rest = try? call.target()
        else {
            return nil
        }
        let path = match.route.path(rest, match.endpoint, behind: call.hidden)
        return (RecordingKey(call.head.method, path: path, call.originFields, content: [], rules), path)
    }
}

extension FetchRequest {
    /// Asks for the answer only where it is another than a recording, as far as that has a validator.
    /// - Returns: whether it has one.
    fileprivate mutating func addConditions(of recording: Recording) -> Bool {
        guard recording.status == 200 else { return false }
        if let tag = recording.fields.first(.etag), tag != Redaction.mark {
            fields.set(.ifNoneMatch, tag)
        } else if let date = recording.fields.first(.lastModified), date != Redaction.mark {
            fields.set(.ifModifiedSince, date)
        } else {
            return false
        }
        return true
    }
}
