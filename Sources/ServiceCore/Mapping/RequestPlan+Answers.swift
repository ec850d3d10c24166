// Which answers are checked, mapped or recorded.

import DownloadCore
import HTTPWire

extension RequestPlan {
    /// True if answers are checked, mapped or recorded: no connection may be handed over unread then.
    var judgesAnswers: Bool { mapping != nil || phases?.types != nil || recording != nil }
}

extension Method {
    /// True if answers to the method are content of the origin; those to the others are about the server, a tunnel or
    /// the request itself.
    var hasJudgedAnswers: Bool { self != .options && self != .connect && self != .trace }
}
