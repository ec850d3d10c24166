// Requests with terms of their own, as tests ask for them one by one.

import HTTPWire

@testable import Upstream

extension UpstreamRequest {
    init(
        method: Method = .get,
        url: String,
        path: String = "",
        fields: Fields = Fields(),
        host: String? = nil,
        bodyFraming: BodyFraming = .none,
        timeouts: Timeouts = Timeouts(),
        tls: TLSOptions = TLSOptions(),
        target: TargetRules = .any,
        proxy: UpstreamProxy? = nil,
        limits: HeadLimits = HeadLimits(),
        isLenient: Bool = true,
        isUpgrade: Bool = false
    ) {
        self.init(
            method: method,
            path: path,
            fields: fields,
            bodyFraming: bodyFraming,
            terms: UpstreamTerms(
                url: url,
                host: host,
                timeouts: timeouts,
                tls: tls,
                target: target,
                proxy: proxy,
                limits: limits,
                isLenient: isLenient
            ),
            isUpgrade: isUpgrade
        )
    }

    var url: String {
        get { terms.url }
        set { change(url: newValue) }
    }

    var timeouts: Timeouts {
        get { terms.timeouts }
        set { change(timeouts: newValue) }
    }

    var tls: TLSOptions {
        get { terms.tls }
        set { change(tls: newValue) }
    }

    private mutating func change(url: String? = nil, timeouts: Timeouts? = nil, tls: TLSOptions? = nil) {
        terms = UpstreamTerms(
            url: url ?? terms.url,
            host: terms.host,
            timeouts: timeouts ?? terms.timeouts,
            tls: tls ?? terms.tls,
            target: terms.target,
            proxy: terms.proxy,
            limits: terms.limits,
            isLenient: terms.isLenient
        )
    }
}
