// Checks the places that answers come from, and their order.

import HTTPCaching
import Policies

/// What a service has that rungs need.
struct RungNeeds {
    /// The service has a `base_url`.
    var hasOrigin: Bool
    /// Calls of the service wait for its origin.
    var isParked: Bool
}

extension Resolver {
    /// Reports rungs that are senseless, and lets demo answers be what `from` says of them.
    /// - Parameters:
    ///   - reader: of a service or an endpoint, with what it inherited.
    ///   - settings: its demo answers are switched on where they are a rung, and off where they are none.
    mutating func check(rungs reader: SectionReader, _ needs: RungNeeds, _ settings: inout RouteSettings) {
        guard let here = reader.place("from") else { return }
        let recording = settings.recording
        let rungs = recording.from
        guard !rungs.isEmpty else {
            return fail(
                here,
                "'from' is empty, so that nothing would answer; name places, such as [fresh, live, stale]"
            )
        }
        if recording.source != .live {
            fail(
                here,
                "'from' and 'source: \(recording.source.rawValue)' both say where answers come from; remove one of them"
            )
        }
        var seen: Set<AnswerRung> = []
        for rung in rungs where !seen.insert(rung).inserted {
            fail(here, "'from' names '\(rung.rawValue)' twice, and each place is asked once; remove one of the two")
        }
        if seen.count == rungs.count { checkOrder(rungs, here) }
        checkNeeds(rungs, here, needs, settings)
        let isOrigin = rungs.firstIndex(of: .live)
        if needs.isParked, let isOrigin, isOrigin + 1 < rungs.count {
            fail(
                here,
                "'from' names '\(rungs[isOrigin + 1].rawValue)' behind live, and with 'park' a request waits for its origin instead; remove 'park', or what is behind live"
            )
        }
        settings.demo.enabled = rungs.contains(.demo) && settings.demo.hasAnswer
        if rungs.count > 1 { settings.demo.unmatched = .pass }
    }

    /// The cache asks its own places in one order, and a fallback is the end.
    private mutating func checkOrder(_ rungs: [AnswerRung], _ here: SourcePosition) {
        let order = AnswerRung.ofCache
        let own = rungs.filter { order.contains($0) }
        for (first, second) in zip(own, own.dropFirst()) {
            guard let place = order.firstIndex(of: first), let other = order.firstIndex(of: second), other < place
            else {
                continue
            }
            let why =
                switch (second, first) {
                case (.seed, _): "a seed hides what is stored, and what the origin would answer"
                case (.fresh, .live):
                    "an answer of the origin takes the place of what is fresh, and is stale when it fails"
                case (.fresh, _): "a stored response is stale only when it is not fresh"
                default: "a stale response stands in for an origin that has failed"
                }
            fail(
                here,
                "'from' names '\(second.rawValue)' behind '\(first.rawValue)', which cannot be had: \(why); write '\(second.rawValue)' before '\(first.rawValue)'"
            )
        }
        if let place = rungs.firstIndex(of: .fallback), place + 1 < rungs.count {
            fail(
                here,
                "'from' names '\(rungs[place + 1].rawValue)' behind 'fallback', which answers whatever comes so far, so that it is never asked; put fallback at the end"
            )
        }
    }

    private mutating func checkNeeds(
        _ rungs: [AnswerRung],
        _ here: SourcePosition,
        _ needs: RungNeeds,
        _ settings: RouteSettings
    ) {
        let (cache, demo) = (settings.cache, settings.demo)
        for (place, rung) in rungs.enumerated() {
            switch rung {
            case .seed:
                if cache.seed?.mode != .pinned {
                    fail(
                        here,
                        "'from' names seed, and there is no pinned seed folder; set cache.seed_dir, or remove seed"
                    )
                }
            case .fresh, .stale:
                if cache.mode == .none {
                    fail(
                        here,
                        "'from' names \(rung.rawValue), and 'cache.mode: none' stores nothing; choose another mode, or remove \(rung.rawValue)"
                    )
                }
            case .live:
                if !needs.hasOrigin {
                    fail(here, "'from' names live, and the service has no 'base_url' to ask; add one, or remove live")
                }
            case .recording:
                if settings.recording.folder == nil {
                    fail(
                        here,
                        "'from' names recording, and there is no folder for recordings; add recordings: { dir: ./recordings }"
                    )
                }
            case .demo:
                if !demo.hasAnswer {
                    fail(here, "'from' names demo, and there are no demo answers; add demo: { … }, or remove demo")
                } else if demo.hasOwnAnswer || demo.rules.contains(where: \.isUnconditional), place + 1 < rungs.count {
                    fail(
                        here,
                        "'from' names '\(rungs[place + 1].rawValue)' behind demo, which answers every request, so that it is never asked; put demo behind it, or give its answers conditions (demo.rules)"
                    )
                }
            case .fallback:
                if cache.fallback == nil {
                    fail(here, "'from' names fallback, and 'cache.fallback' is not set; set it, or remove fallback")
                }
            }
        }
    }
}
