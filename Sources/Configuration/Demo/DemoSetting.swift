// A setting of demo answers and faults that an operator changes while the daemon runs.

import Matching
package import Policies

/// One key of a service or an endpoint with a changed value.
package struct DemoSetting: Sendable, Equatable {
    package enum Key: String, Sendable, CaseIterable {
        /// Demo mode is `on` or `off`.
        case enabled
        case latency
        case status
        /// The share of failures.
        case chance
        /// The name of a fault profile, or `off`; it applies to every answer, whatever its source.
        case faults

        /// All keys as text, with commas between them.
        package static var names: String { allCases.map(\.rawValue).joined(separator: ", ") }
    }

    private enum Value: Sendable, Equatable {
        case enabled(Bool)
        case latency(LatencyPolicy)
        case status(Int)
        case chance(Double)
        /// The fault profile by its name; nil for no faults.
        case faults(profile: String?)
    }

    package let key: Key
    /// The value as it was written.
    package let text: String
    private let value: Value

    /// Parses a setting.
    /// - Parameter text: the value in the form of a configuration file.
    /// - Throws: the mistake in the value, with the correct form.
    package init(_ key: Key, _ text: String) throws(Lifetimes.Malformed) {
        self.key = key
        self.text = text
        do throws(ScalarProblem) {
            switch key {
            case .enabled:
                guard ["on", "off"].contains(text) else { throw ScalarProblem("'\(text)' is neither on nor off") }
                value = .enabled(text == "on")
            case .latency: value = .latency(try Units.distribution(text))
            case .status:
                guard let status = Int(text), 200...599 ~= status else {
                    throw ScalarProblem("'\(text)' is no status of an answer; write a number from 200 to 599")
                }
                value = .status(status)
            case .chance: value = .chance(try Units.share(text))
            case .faults:
                guard !text.isEmpty else {
                    throw ScalarProblem("write the name of a fault profile, such as flaky-mobile, or off")
                }
                value = .faults(profile: text == "off" ? nil : text)
            }
        } catch {
            throw Lifetimes.Malformed(description: error.message)
        }
    }

    /// Whether the setting changes demo answers only, and so has no effect without any.
    package var needsDemoAnswers: Bool { key != .faults }

    /// The reason why the setting does not fit this configuration, and the correct form; nil if it fits.
    package func problem(with configuration: Configuration) -> String? {
        if case .latency(let policy) = value, case .learned(let learned) = policy.shape, let source = learned.source {
            return Resolver.problem(ofLearned: source, among: configuration.learnableLabels).map { "latency \($0)" }
        }
        let profiles = configuration.faultProfiles
        guard case .faults(let name?) = value, profiles[name] == nil else { return nil }
        let known = profiles.keys.sorted()
        let near = Suggestions.nearest(to: name, among: known).map { "did you mean '\($0)'?" }
        return "there is no fault profile '\(name)'; \(near ?? "there are \(known.joined(separator: ", ")), and off")"
    }

    /// Applies the setting to a service and all its endpoints.
    package func apply(to service: inout ServiceConfiguration, _ profiles: [String: [FaultPolicy]]) {
        apply(to: &service.settings, profiles)
        for index in service.endpoints.indices { apply(to: &service.endpoints[index], profiles) }
    }

    /// Applies the setting to one endpoint.
    package func apply(to endpoint: inout EndpointConfiguration, _ profiles: [String: [FaultPolicy]]) {
        apply(to: &endpoint.settings, profiles)
    }

    /// Applies the setting to a route; without demo answers, demo mode stays off.
    private func apply(to settings: inout RouteSettings, _ profiles: [String: [FaultPolicy]]) {
        switch value {
        case .enabled(let isOn): settings.demo.enabled = isOn && settings.demo.hasAnswer
        case .faults(let profile): settings.faults = profile.map { profiles[$0] ?? settings.faults } ?? []
        case .latency, .status, .chance:
            apply(to: &settings.demo.answer)
            for index in settings.demo.rules.indices { apply(to: &settings.demo.rules[index]) }
        }
    }

    private func apply(to rule: inout DemoRuleConfiguration) {
        switch value {
        case .enabled, .faults: break
        case .latency(let policy): rule.latency = policy
        case .status(let status):
            // The status replaces several answers and a collection, because these have statuses of their own.
            rule.choice = .one
            rule.answer.collection = nil
            rule.answer.status = status
        case .chance(let chance):
            if rule.failure == nil { rule.failure = FailureConfiguration(SectionReader(nothingOf: KeyTable.failure)) }
            rule.failure?.chance = chance
        }
    }
}
