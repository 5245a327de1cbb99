-- SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
--
-- Wireshark dissector for AF_SOVIA: the messages of lanes (include/sovia/wire.h) over RoCE,
-- InfiniBand and iWARP, and hellos in the connection manager's private data.  For Wireshark 4.0
-- and later; see Documentation/dissector.rst.
--
-- How messages get here
--	RoCE	The infiniband dissector offers the private data of each message of the connection
--		manager, and the payload of each packet of a queue pair.  It does not say which queue
--		pair, opcode or immediate data: field extractors do.  It does not reassemble
--		messages: take_packet() does.
--	iWARP	The DDP dissector reassembles messages, but loses a part of one that shares a TCP
--		segment with another message (4.0).  And there is no list for the private data of
--		MPA.  So a postdissector takes both from the fields of MPA.
--
-- A header with a payload may be as long as payload without one: only the last packet of a
-- message, which has the immediate data or has none, tells what it is.  So messages are shown
-- in their last packet.  Only the first bytes of a message are kept.
--
-- A lane has state, so packets are read once, in their order, and the results are kept: see
-- once().

local sovia = Proto("sovia", "AF_SOVIA")
local iwarp = Proto("sovia.iwarp", "AF_SOVIA over iWARP")

-- ---- wire.h ----

local WIRE_MAGIC, WIRE_VERSION = 0x534f5641, 5
local HDR_LEN, CONN_LEN, HELLO_LEN, REJECT_LEN = 32, 32, 56, 8
local WINDOW_MAX, PAYLOAD_MIN, PAYLOAD_MAX, LANES_MAX = 1024, 2048, 65536, 16
local NO_ID = ("\0"):rep(8)
local HEAD_LEN = HDR_LEN + CONN_LEN -- all of a message that is looked at

-- As sovia_types of kmod/lane/wire.c.
local TYPES = {
	[1] = { name = "DATA", ports = true, least = 1, more = true },
	[2] = { name = "ACK", least = 0, more = true },
	[3] = { name = "WAKEUP", ports = true, least = 0 },
	[4] = { name = "FIN", ports = true, least = 0 },
	[6] = { name = "CONN", ports = true, least = CONN_LEN },
	[7] = { name = "ACCEPT", ports = true, least = 0 },
	[8] = { name = "REFUSE", ports = true, least = 0 },
	[9] = { name = "RESET", ports = true, least = 0 },
	[10] = { name = "PROBE", least = 0 },
	[11] = { name = "URGENT", ports = true, least = 0 },
	[19] = { name = "PRESSURE", ports = true, least = 0 },
	[20] = { name = "RETURN", ports = true, least = 0 },
	[21] = { name = "PARK", least = 0 },
}
local DATA, ACK, CONN, ACCEPT, REFUSE, RESET = 1, 2, 6, 7, 8, 9

local CODES = {
	[0] = "NONE", "NO_LISTENER", "BUSY", "NO_MEMORY", "BAD_ADDRESS", "ABORT", "NO_SOCKET", "PROTOCOL",
	"NO_LINK", [10] = "USE_TCP", [11] = "DENIED", [12] = "NO_DIRECTION",
}
local CODE_COUNT = 13

local FLAGS = { { 0x0001, "ackreq" }, { 0x0002, "fin" }, { 0x0004, "gone" }, { 0x0040, "want" } }

local TYPE_NAMES = {}
for number, type in pairs(TYPES) do
	TYPE_NAMES[number] = type.name
end

-- ---- fields ----

local F, X = {}, {}

for _, entry in ipairs({
	-- struct sovia_hdr
	{ "uint8", "version", "Version" },
	{ "uint8", "type", "Type", base.DEC, TYPE_NAMES },
	{ "uint16", "flags", "Flags", base.HEX },
	{ "bool", "flags.ackreq", "ACKREQ: acknowledge at once", 16, nil, 0x0001 },
	{ "bool", "flags.fin", "FIN: the stream ends after it", 16, nil, 0x0002 },
	{ "bool", "flags.gone", "GONE: its sender has closed", 16, nil, 0x0004 },
	{ "bool", "flags.want", "WANT: the last credit, and more is waiting", 16, nil, 0x0040 },
	{ "uint32", "len", "Payload length" },
	{ "uint32", "seq", "Number" },
	{ "uint32", "ack", "Acknowledges all below" },
	{ "uint16", "sport", "Source port" },
	{ "uint16", "dport", "Destination port" },
	{ "uint16", "port", "Port" },
	{ "uint32", "window", "Window (stream offset)" },
	{ "uint32", "ref", "Reference" },
	{ "uint32", "code", "Code", base.DEC, CODES },
	-- payload
	{ "bytes", "payload", "Payload" },
	{ "ipv6", "conn.saddr", "Address of the connecting socket" },
	{ "ipv6", "conn.daddr", "Address it connects to" },
	-- compact DATA
	{ "bool", "compact", "Compact" },
	{ "uint32", "imm", "Immediate data", base.HEX },
	{ "uint32", "imm.slot", "Slot", base.DEC, nil, 0xff000000 },
	{ "uint32", "imm.flags", "Flags", base.HEX, nil, 0x00f00000 },
	{ "uint32", "imm.check", "Check", base.HEX, nil, 0x000ff800 },
	{ "uint32", "imm.ack", "Acknowledges all below, lower bits", base.DEC, nil, 0x000007ff },
	-- struct sovia_hello
	{ "uint32", "hello.magic", "Magic", base.HEX },
	{ "uint8", "hello.version", "Version" },
	{ "uint8", "hello.lane", "Lane" },
	{ "uint16", "hello.window", "Window (messages)" },
	{ "uint32", "hello.payload", "Largest payload" },
	{ "uint32", "hello.rx_next", "Expects next" },
	{ "uint64", "hello.id", "Id of the sender's end", base.HEX },
	{ "uint64", "hello.peer_id", "Id of the receiver's end", base.HEX },
	{ "uint32", "hello.generation", "Generation" },
	{ "uint32", "hello.zero", "Zero", base.HEX },
	{ "bytes", "hello.mac", "MAC" },
	-- struct sovia_reject
	{ "uint32", "reject.magic", "Magic", base.HEX },
	{ "uint32", "reject.code", "Code", base.DEC, CODES },
	-- what the dissector adds
	{ "string", "cm", "Connection manager" },
	{ "uint32", "in_flight", "Messages not acknowledged, with this one" },
	{ "bool", "resent", "Sent before, on a lane that has been lost" },
	{ "bool", "repeated", "Packet repeated by the transport" },
	{ "framenum", "whole_in", "Message is complete in", base.NONE },
	{ "framenum", "part", "Begins in", base.NONE },
	{ "framenum", "answer_in", "Answer in", base.NONE, frametype.RESPONSE },
	{ "framenum", "request_in", "Answers", base.NONE, frametype.REQUEST },
	{ "relative_time", "time", "Time from request to answer" },
}) do
	F[entry[2]] = ProtoField[entry[1]]("sovia." .. entry[2], table.unpack(entry, 3))
end
sovia.fields = F

for _, entry in ipairs({
	{ "version", "MALFORMED", "ERROR", "Another version than agreed on" },
	{ "type", "MALFORMED", "ERROR", "Unknown type" },
	{ "length", "MALFORMED", "ERROR", "Bad length" },
	{ "ports", "MALFORMED", "ERROR", "Ports missing, or where none belong" },
	{ "slot", "MALFORMED", "ERROR", "Compact DATA without a header before" },
	{ "hello", "MALFORMED", "ERROR", "Hello with invalid values" },
	{ "sequence", "SEQUENCE", "WARN", "Number out of sequence" },
	{ "ack", "SEQUENCE", "WARN", "Acknowledges what was not sent" },
	{ "unknown", "UNDECODED", "NOTE", "Flag or code that this dissector does not know" },
	{ "refused", "RESPONSE_CODE", "NOTE", "Refused, rejected or reset" },
	{ "cut", "UNDECODED", "NOTE", "Not captured completely" },
	{ "missing", "SEQUENCE", "NOTE", "Packets before this one were lost or not captured" },
}) do
	local name, group, severity, text = table.unpack(entry)
	X[name] = ProtoExpert.new("sovia.expert." .. name, text, expert.group[group], expert.severity[severity])
end
sovia.experts = X
sovia.prefs.service = Pref.uint("Service port", 299, "rdma_cm port of the service (parameter service_port)")
sovia.prefs.unknown = Pref.bool("Find lanes without their set-up", true,
	"Take a packet for a message if it is one in every respect, although its queue pair's set-up was not captured")

-- What other dissectors have found in the packet: the last one, as outer headers come first.
local function extractor(name)
	local extract = Field.new(name)
	return function()
		local found = { extract() }
		return found[#found]
	end
end

local GET = {}
for key, name in pairs({
	ip_src = "ip.src", ip_dst = "ip.dst", ipv6_src = "ipv6.src", ipv6_dst = "ipv6.dst", stream = "tcp.stream",
	opcode = "infiniband.bth.opcode", pad = "infiniband.bth.padcnt", qp = "infiniband.bth.destqp",
	psn = "infiniband.bth.psn", imm = "infiniband.immdt",
	service = "infiniband.cm.req.serviceid",
	req = "infiniband.cm.req", req_qp = "infiniband.cm.req.localqpn", req_psn = "infiniband.cm.req.startpsn",
	rep = "infiniband.cm.rep", rep_to = "infiniband.cm.rep.remotecommid",
	rep_qp = "infiniband.cm.rep.localqpn", rep_psn = "infiniband.cm.rep.startpsn",
	rej = "infiniband.cm.rej.localcommid", rej_to = "infiniband.cm.rej.remotecommid",
	rtu = "infiniband.cm.rtu.localcommid", rtu_to = "infiniband.cm.rtu.remotecommid",
	dreq = "infiniband.cm.dreq.localcommid", dreq_to = "infiniband.cm.dreq.remotecommid",
	drep = "infiniband.cm.drsp.localcommid", drep_to = "infiniband.cm.drsp.remotecommid",
	mpa_req = "iwarp_mpa.key.req", mpa_rep = "iwarp_mpa.key.rep", mpa_rejected = "iwarp_mpa.rej_flag",
	mpa_flags = "iwarp_mpa.res", mpa_private = "iwarp_mpa.privatedata", mpa_markers = "iwarp_mpa.markers",
}) do
	GET[key] = extractor(name)
end
local all_fpdus = Field.new("iwarp_mpa.fpdu")

local function get(key)
	local found = GET[key]()
	return found and found.value
end

-- ---- state ----

-- Of a capture file:
--	ways	by address and queue pair: the direction of a VI that leads there; false if it is another
--		service's
--	cm	by address and the connection manager's number there: the VI
--	streams	by TCP stream: the VI, with iWARP
--	ends	by id: an end of a link, which may have one VI after the other
--	known	by frame: what once() has found
local ways, cm, ends, streams, known
local FOREIGN = { foreign = true }

function sovia.init()
	ways, cm, ends, streams, known = {}, {}, {}, {}, {}
end

local function before(a, b) return (a - b) % 0x100000000 >= 0x80000000 end

-- What one end of a VI sends.
--	peer	what the other end sends
--	from	the end of the link; its requests are answered over any VI
--	packet	number of the next packet (PSN) or message (MSN)
--	seq	number of the next message, nil if not known
--	acked	what it has acknowledged
--	slots	ports of compact DATA
--	whole	all has been captured since the set-up
--	payload	what the other end takes
--	part	the message whose packets arrive
local function new_direction()
	return { from = { conns = {} }, slots = {}, payload = PAYLOAD_MAX, version = WIRE_VERSION }
end

local function new_vi()
	local vi = { asker = new_direction(), answerer = new_direction() }
	vi.asker.peer, vi.answerer.peer = vi.answerer, vi.asker
	return vi
end

-- One who has sent a hello says which message it takes next, and how long it may be.
local function introduce(direction, hello)
	ends[hello.id] = ends[hello.id] or { conns = {} }
	direction.from = ends[hello.id]
	direction.version = hello.version
	direction.acked = hello.rx_next
	direction.peer.seq = hello.rx_next
	direction.peer.payload = hello.payload
end

-- What read() returns for a frame, which is called once for each, in their order.  tshark -2
-- has no fields in its first pass, when read() returns nil.
local function once(read, tvb, pinfo)
	known[pinfo.number] = known[pinfo.number] or read(tvb, pinfo)
	return known[pinfo.number]
end

-- ---- structures ----

-- Fields and their lengths.
local HDR_FIELDS = {
	{ "version", 1 }, { "type", 1 }, { "flags", 2 }, { "len", 4 }, { "seq", 4 }, { "ack", 4 }, { "sport", 2 },
	{ "dport", 2 }, { "window", 4 }, { "ref", 4 }, { "code", 4 },
}
local CONN_FIELDS = { { "conn.saddr", 16 }, { "conn.daddr", 16 } }
local HELLO_FIELDS = {
	{ "hello.magic", 4 }, { "hello.version", 1 }, { "hello.lane", 1 }, { "hello.window", 2 },
	{ "hello.payload", 4 }, { "hello.rx_next", 4 }, { "hello.id", 8 }, { "hello.peer_id", 8 },
	{ "hello.generation", 4 }, { "hello.zero", 4 }, { "hello.mac", 16 },
}
local REJECT_FIELDS = { { "reject.magic", 4 }, { "reject.code", 4 } }

-- A table of the values, by names without what is before the dot: numbers of up to four bytes, others
-- as strings.  All bytes have to be there.
local function unpack_fields(bytes, list)
	local values, offset = {}, 1
	for _, field in ipairs(list) do
		local name, len = field[1]:match("[^.]+$"), field[2]
		values[name] = len > 4 and bytes:sub(offset, offset + len - 1) or Struct.unpack(">I" .. len, bytes, offset)
		offset = offset + len
	end
	return values
end

-- Adds the fields to a tree; returns the items by name.
local function add_fields(tree, tvb, offset, list)
	local items = {}
	for _, field in ipairs(list) do
		items[field[1]] = tree:add(F[field[1]], tvb(offset, field[2]))
		offset = offset + field[2]
	end
	return items
end

-- ---- messages ----

local function complain(msg, what, text)
	msg.bad[#msg.bad + 1] = { X[what], text }
end

-- Splits the head of a message; nil if it is too short.
local function split_header(head)
	return #head >= HDR_LEN and unpack_fields(head, HDR_FIELDS) or nil
end

-- As sovia_msg_parse(): the first reason not to take it, and nil if there is none.
local function header_fault(hdr, total, version, payload)
	local type = TYPES[hdr.type]
	if hdr.version ~= version then
		return "version"
	elseif not type then
		return "type"
	elseif hdr.len ~= total - HDR_LEN then
		return "length", string.format("Length is %d, and %d bytes follow the header", hdr.len, total - HDR_LEN)
	elseif hdr.len < type.least or hdr.len > (type.more and payload or type.least) then
		return "length", string.format("%s must not have %d bytes of payload", type.name, hdr.len)
	elseif type.ports and (hdr.sport == 0 or hdr.dport == 0) or not type.ports and hdr.sport + hdr.dport > 0 then
		return "ports"
	end
	return nil
end

local function name_in(names, number) return names[number] or string.format("%d", number) end

local function has_flag(flags, bits) return bit.band(flags, bits) ~= 0 end

local function flag_names(flags)
	local names, rest = "", flags
	for _, flag in ipairs(FLAGS) do
		if has_flag(flags, flag[1]) then
			names = names .. " " .. flag[2]:upper()
			rest = rest - flag[1]
		end
	end
	return names, rest
end

-- Sequence numbers, of which those of a retransmission after a recovery are old.
local function account(direction, msg)
	local hdr, from, peer = msg.hdr, direction.from, direction.peer
	local counts = hdr.type ~= ACK
	if direction.seq and hdr.seq ~= direction.seq then
		complain(msg, "sequence", string.format("Number %d, expected %d", hdr.seq, direction.seq))
	end
	direction.seq = (hdr.seq + (counts and 1 or 0)) % 0x100000000
	if counts then
		msg.resent = from.next and before(hdr.seq, from.next)
		from.next = msg.resent and from.next or direction.seq
	end
	if peer and peer.seq and before(peer.seq, hdr.ack) then
		complain(msg, "ack", string.format("Acknowledges %d, and the next number is %d", hdr.ack, peer.seq))
	elseif not direction.acked or before(direction.acked, hdr.ack) then
		direction.acked = hdr.ack
	end
	if peer and peer.acked then
		msg.in_flight = (direction.seq - peer.acked) % 0x100000000
	end
end

-- Requests and their answers, which name the number of the request.
local function match(direction, msg)
	local hdr, peer = msg.hdr, direction.peer
	if hdr.type == CONN then
		direction.from.conns[hdr.seq] = msg
	elseif hdr.type == ACCEPT or hdr.type == REFUSE then
		local request = peer and peer.from.conns[hdr.ref]
		if request then
			msg.request = request
			request.answer = request.answer or msg
		end
	end
end

local function read_header(direction, msg)
	local hdr = split_header(msg.head)
	if not hdr then
		-- a capture with short packets has a part of it
		complain(msg, msg.total < HDR_LEN and "length" or "cut")
		direction.seq, direction.whole = nil, false
		return
	end
	msg.hdr = hdr
	local fault, text = header_fault(hdr, msg.total, direction.version, direction.payload)
	if fault then
		complain(msg, fault, text)
		direction.seq = nil
		return
	end
	local _, rest = flag_names(hdr.flags)
	if rest ~= 0 or hdr.code >= CODE_COUNT then
		complain(msg, "unknown")
	end
	if hdr.type == DATA then
		direction.slots[bit.bxor(hdr.sport, hdr.dport) % 256] = { hdr.sport, hdr.dport }
	end
	account(direction, msg)
	match(direction, msg)
end

-- As sovia_imm_parse().
local function read_compact(direction, msg)
	local imm, seq = msg.imm, direction.seq
	local ports = direction.slots[math.floor(imm / 0x1000000)]
	local hdr = { type = DATA, flags = math.floor(imm / 0x100000) % 16, len = msg.total }
	msg.hdr = hdr
	if msg.total == 0 or msg.total > direction.payload then
		complain(msg, "length")
		return
	elseif ports then
		hdr.sport, hdr.dport = ports[1], ports[2]
	elseif direction.whole then
		complain(msg, "slot")
	end
	if not seq or not direction.acked then
		return
	end
	local check = seq + math.floor(msg.total / 256) * 4
	hdr.seq = (seq + (math.floor(imm / 0x800) - check) % 0x200) % 0x100000000
	hdr.ack = (direction.acked + (imm - direction.acked) % 0x800) % 0x100000000
	account(direction, msg)
end

local function read_message(direction, part, imm)
	local msg = {
		head = part.head, total = part.total, imm = imm, bad = {},
		first = part.first, packets = part.packets, frame = part.frame, at = part.at,
	}
	if part.gap then
		complain(msg, "missing")
	end
	if imm then
		read_compact(direction, msg)
	else
		read_header(direction, msg)
	end
	return msg
end

-- Is a packet the next one?  The transport repeats packets from one that was lost on; what came
-- after that was not taken.
local function next_packet(direction, number, modulus)
	local ahead = direction.packet and (number - direction.packet) % modulus or 0
	if direction.lost and number == direction.lost.packet then
		direction.seq, direction.lost = direction.lost.seq, nil
	elseif ahead >= modulus / 2 then
		return false
	elseif ahead > 0 then
		direction.lost = direction.lost or { packet = direction.packet, seq = direction.seq }
		direction.seq, direction.whole, direction.part = nil, false, nil
		direction.gap = true
	end
	return true
end

-- A packet of a lane; returns what to show:
--	msg	a message, which it completes
--	part	a part of a message
--	repeated	it has been here before
--	gap	there should have been others before
local function take_packet(direction, packet)
	if not next_packet(direction, packet.number, packet.modulus) then
		return { repeated = true }
	end
	direction.packet = (packet.number + packet.step) % packet.modulus
	local found = { gap = direction.gap }
	direction.gap = nil
	if packet.first then
		direction.part = { head = "", total = 0, first = packet.frame }
	end
	local part = direction.part
	if not part then
		-- its beginning was not captured
		found.gap = true
		return found
	end
	if #part.head == part.total and #part.head < HEAD_LEN then
		part.head = part.head .. packet.bytes:sub(1, HEAD_LEN - #part.head)
	end
	part.total = part.total + packet.len
	part.frame, part.at = packet.frame, packet.at
	part.packets = (part.packets or 0) + 1
	found.part = part
	if packet.last then
		direction.part = nil
		part.gap = found.gap
		found.msg = read_message(direction, part, packet.imm)
		part.msg = found.msg
	end
	return found
end

-- ---- showing messages ----

local function generated(tree, field, value)
	if value ~= nil then
		tree:add(field, value):set_generated()
	end
end

-- Of a request or an answer: where the other one is.
local function show_match(tree, msg)
	if msg.answer then
		generated(tree, F.answer_in, msg.answer.frame)
	elseif msg.request then
		local ns = math.floor((msg.at - msg.request.at) * 1e9 + 0.5)
		local seconds = math.floor(ns / 1e9)
		generated(tree, F.request_in, msg.request.frame)
		generated(tree, F.time, NSTime.new(seconds, ns - seconds * 1e9))
	end
end

-- For filters, as tcp.port.
local function add_ports(tree, hdr)
	for _, port in ipairs({ hdr.sport, hdr.dport }) do
		if port ~= 0 then
			tree:add(F.port, port):set_hidden()
		end
	end
end

local REF_TEXT = {
	[ACK] = " (messages that its sender takes unacknowledged)",
	[ACCEPT] = " (number of the CONN)",
	[REFUSE] = " (number of the CONN)",
	[11] = " (offset of the urgent byte)",
	[20] = " (offset up to which its sender may send)",
}

-- Adds struct sovia_hdr, at the beginning of tvb.
local function show_header(tree, tvb, hdr)
	local items = add_fields(tree, tvb, 0, HDR_FIELDS)
	items.flags:append_text((flag_names(hdr.flags)))
	for _, flag in ipairs(FLAGS) do
		items.flags:add(F["flags." .. flag[2]], tvb(2, 2))
	end
	items.ref:append_text(REF_TEXT[hdr.type] or "")
	add_ports(tree, hdr)
end

-- What stands for the header of compact DATA.
local function show_compact(tree, hdr, range)
	generated(tree, F.compact, true)
	if range then
		local item = tree:add(F.imm, range)
		for _, name in ipairs({ "slot", "flags", "check", "ack" }) do
			item:add(F["imm." .. name], range)
		end
	end
	for _, name in ipairs({ "type", "len", "seq", "ack", "sport", "dport" }) do
		generated(tree, F[name], hdr[name])
	end
	local flags = tree:add(F.flags, hdr.flags):append_text((flag_names(hdr.flags))):set_generated()
	for _, flag in ipairs(FLAGS) do
		generated(flags, F["flags." .. flag[2]], hdr.flags)
	end
	add_ports(tree, hdr)
end

local function summary(msg)
	local hdr = msg.hdr
	if not hdr then
		return "not a message"
	end
	local text = name_in(TYPE_NAMES, hdr.type)
	if hdr.sport and hdr.sport + hdr.dport > 0 then
		text = string.format("%s %d → %d", text, hdr.sport, hdr.dport)
	end
	if hdr.type == REFUSE or hdr.type == RESET then
		text = text .. " " .. name_in(CODES, hdr.code)
	end
	text = text .. flag_names(hdr.flags)
	for _, name in ipairs({ "seq", "ack", "len" }) do
		if hdr[name] and not (name == "len" and hdr.len == 0) then
			text = string.format("%s %s=%d", text, name, hdr[name])
		end
	end
	if hdr.type == ACK and hdr.ref > 0 then
		text = string.format("%s takes=%d", text, hdr.ref)
	end
	return text .. (msg.imm and " compact" or "")
end

local function show_complaints(tree, msg)
	for _, bad in ipairs(msg.bad) do
		tree:add_proto_expert_info(table.unpack(bad))
	end
	local hdr = msg.hdr
	if hdr and (hdr.type == REFUSE or hdr.type == RESET) then
		tree:add_proto_expert_info(X.refused, TYPE_NAMES[hdr.type] .. ": " .. name_in(CODES, hdr.code))
	end
end

local function show_body(tree, msg, tvb)
	local at = (msg.imm or msg.packets > 1) and 0 or HDR_LEN
	if not tvb or tvb:len() <= at then
		return
	elseif msg.hdr.type == CONN and msg.packets == 1 and tvb:len() >= HEAD_LEN then
		add_fields(tree, tvb, HDR_LEN, CONN_FIELDS)
	else
		tree:add(F.payload, tvb(at))
	end
end

-- A message that ends in this packet, whose bytes are in tvb.
local function show_message(tree, msg, tvb, imm)
	local head = tvb
	if msg.packets > 1 then
		generated(tree, F.part, msg.first)
		head = ByteArray.new(msg.head, true):tvb("Beginning of an AF_SOVIA message")
	end
	tree:append_text(", " .. summary(msg))
	if msg.hdr then
		if msg.imm then
			show_compact(tree, msg.hdr, imm)
		else
			show_header(tree, head, msg.hdr)
		end
		show_body(tree, msg, tvb)
		generated(tree, F.in_flight, msg.in_flight)
		generated(tree, F.resent, msg.resent or nil)
		show_match(tree, msg)
	end
	show_complaints(tree, msg)
end

-- What take_packet() has found; returns a line for the Info column.  A packet without bytes has no tvb.
local function show_packet(root, found, tvb, imm)
	local tree = tvb and root:add(sovia, tvb()) or root:add(sovia)
	if found.repeated then
		generated(tree, F.repeated, true)
		return "repeated packet"
	elseif found.gap and not found.msg then
		tree:add_proto_expert_info(X.missing)
	end
	local msg = found.msg
	if msg then
		show_message(tree, msg, tvb, imm)
		return summary(msg)
	end
	local part = found.part
	if part then
		generated(tree, F.whole_in, part.msg and part.msg.frame)
	end
	if tvb then
		tree:add(F.payload, tvb())
	end
	return "part of a message"
end

-- Several messages may share a frame.
local function set_columns(pinfo, list)
	pinfo.cols.protocol = "SOVIA"
	pinfo.cols.info = table.concat(list, "; ")
end

-- ---- hellos ----

local function read_hello(bytes)
	return #bytes >= HELLO_LEN and unpack_fields(bytes, HELLO_FIELDS) or nil
end

-- As sovia_hello_parse().
local function hello_fault(hello)
	if hello.magic ~= WIRE_MAGIC then
		return "not a hello"
	elseif hello.version ~= WIRE_VERSION then
		return "version"
	elseif hello.window == 0 or hello.window > WINDOW_MAX then
		return "window"
	elseif hello.payload < PAYLOAD_MIN or hello.payload > PAYLOAD_MAX then
		return "payload"
	elseif hello.id == NO_ID then
		return "no id"
	elseif hello.peer_id == NO_ID and hello.rx_next ~= 0 then
		return "messages on a link that is to be"
	elseif hello.lane >= LANES_MAX then
		return "lane"
	end
	return nil
end

local function show_hello(tree, tvb, hello)
	local fault = hello and hello_fault(hello) or not hello and "too short"
	if hello then
		add_fields(tree, tvb, 0, HELLO_FIELDS)
	end
	if fault then
		tree:add_proto_expert_info(X.hello, "Hello: " .. fault)
	end
end

local function show_reject(tree, tvb)
	if not tvb or tvb:len() < REJECT_LEN or tvb(0, 4):uint() ~= WIRE_MAGIC then
		tree:add_proto_expert_info(X.refused, "Rejected by the connection manager")
		return ""
	end
	local text = name_in(CODES, tvb(4, 4):uint())
	add_fields(tree, tvb, 0, REJECT_FIELDS)
	tree:add_proto_expert_info(X.refused, "Link rejected: " .. text)
	return " " .. text
end

-- ---- the connection manager's messages ----

-- What is in a message of the connection manager:
--	kind	REQ, REP, REJ, RTU, DREQ or DREP
--	hello	of REQ and REP
--	request, answer, frame, at	for show_match()
local function hello_summary(found)
	local hello = found.hello
	if not hello then
		return ""
	end
	local what = found.kind == "REQ" and hello.peer_id ~= NO_ID and "resume" or "link"
	return string.format(" %s lane=%d window=%d payload=%d expects=%d", what, hello.lane, hello.window,
		hello.payload, hello.rx_next)
end

local function show_cm(root, pinfo, found, tvb)
	local tree = tvb and root:add(sovia, tvb()) or root:add(sovia)
	local text = found.kind
	generated(tree, F.cm, found.kind)
	if found.kind == "REQ" or found.kind == "REP" then
		show_hello(tree, tvb, found.hello)
		text = text .. hello_summary(found)
	elseif found.kind == "REJ" then
		text = text .. show_reject(tree, tvb)
	end
	tree:append_text(", " .. text)
	show_match(tree, found)
	set_columns(pinfo, { text })
end

-- A REQ or REP of a VI, or another message; what comes again is not taken.
local function take_cm(vi, found, bytes)
	if found.kind == "REQ" then
		vi.request = vi.request or found
		found.hello = read_hello(bytes)
		if found.hello and vi.request == found then
			introduce(vi.asker, found.hello)
		end
	elseif found.kind == "REP" then
		found.hello = read_hello(bytes)
		if found.hello and not vi.answered then
			introduce(vi.answerer, found.hello)
			vi.asker.whole, vi.answerer.whole = true, true
			vi.answered = true
		end
	end
	if found.kind == "REP" or found.kind == "REJ" then
		found.request = vi.request
		if vi.request then
			vi.request.answer = vi.request.answer or found
		end
	end
	return found
end

-- At most so many bytes of a Tvb or TvbRange, from an offset on, as a string.
local function bytes_of(buffer, len, offset)
	offset = offset or 0
	len = math.min(buffer:len() - offset, len)
	return len > 0 and buffer:raw(offset, len) or ""
end

-- ---- RoCE and InfiniBand ----

-- Of the packet, where it comes from or goes to.
local function address(pinfo, which)
	local found = GET["ip_" .. which]() or GET["ipv6_" .. which]()
	return found and tostring(found.range:bytes()) or tostring(pinfo[which])
end

local function cm_request(pinfo)
	local service = get("service")
	local sender = address(pinfo, "src")
	local key, qp = sender .. "/" .. get("req"), sender .. "/" .. get("req_qp")
	-- RDMA_PS_TCP and the port
	if service:higher() ~= 0 or service:lower() ~= 0x01060000 + sovia.prefs.service then
		ways[qp], cm[key] = false, FOREIGN
		return FOREIGN
	end
	local vi = cm[key]
	-- one that is repeated asks for the same queue pair
	if not vi or vi.qp ~= qp then
		vi = new_vi()
		vi.qp, cm[key], ways[qp] = qp, vi, vi.answerer
		-- both ends say which number they expect
		vi.answerer.packet = get("req_psn")
	end
	return vi
end

local function cm_reply(pinfo)
	local sender = address(pinfo, "src")
	local vi = cm[address(pinfo, "dst") .. "/" .. get("rep_to")]
	local qp = sender .. "/" .. get("rep_qp")
	if not vi then
		return nil
	end
	cm[sender .. "/" .. get("rep")] = vi
	if vi.foreign then
		ways[qp] = false
	elseif not vi.answered then
		ways[qp], vi.asker.packet = vi.asker, get("rep_psn")
	end
	return vi
end

local function cm_other(pinfo, kind)
	return cm[address(pinfo, "dst") .. "/" .. get(kind .. "_to")] or cm[address(pinfo, "src") .. "/" .. get(kind)]
end

-- Others may have its queue pairs next.
local function forget(vi)
	for qp, direction in pairs(ways) do
		if direction == vi.asker or direction == vi.answerer then
			ways[qp] = nil
		end
	end
end

local CM_KINDS = { req = cm_request, rep = cm_reply, rej = cm_other, rtu = cm_other, dreq = cm_other, drep = cm_other }

local function read_cm(tvb, pinfo)
	for kind, find in pairs(CM_KINDS) do
		if GET[kind]() then
			local vi = find(pinfo, kind)
			if not vi or vi.foreign then
				return FOREIGN
			elseif kind == "drep" or kind == "rej" then
				forget(vi)
			end
			return take_cm(vi, { kind = kind:upper(), frame = pinfo.number, at = pinfo.rel_ts }, bytes_of(tvb, HELLO_LEN))
		end
	end
	return nil
end

local function dissect_cm(tvb, pinfo, root)
	local found = once(read_cm, tvb, pinfo)
	if not found or found.foreign then
		return false
	end
	show_cm(root, pinfo, found, tvb)
	return true
end

-- RC SEND: first, middle, last, last with immediate, only, only with immediate.
local function split_packet(tvb, pinfo, opcode)
	local imm = GET.imm()
	local len = math.max(0, tvb:reported_len() - get("pad"))
	return {
		first = opcode == 0 or opcode >= 4, last = opcode >= 2,
		imm = (opcode == 3 or opcode == 5) and imm and imm.range:uint() or nil,
		len = len, bytes = bytes_of(tvb, math.min(len, HEAD_LEN)),
		number = get("psn"), step = 1, modulus = 0x1000000, frame = pinfo.number, at = pinfo.rel_ts,
	}
end

-- A packet of a queue pair whose set-up is not known is a message if all of its header fits.
local function looks_like_message(packet)
	local hdr = packet.first and packet.last and not packet.imm and split_header(packet.bytes)
	if not hdr or header_fault(hdr, packet.len, WIRE_VERSION, PAYLOAD_MAX) then
		return false
	end
	local _, rest = flag_names(hdr.flags)
	return rest == 0 and hdr.code < CODE_COUNT and (hdr.code == 0 or hdr.type == REFUSE or hdr.type == RESET)
end

local function read_packet(tvb, pinfo)
	local opcode = get("opcode")
	if not opcode then
		return nil
	elseif opcode > 5 then
		return FOREIGN
	end
	local packet = split_packet(tvb, pinfo, opcode)
	local qp = address(pinfo, "dst") .. "/" .. get("qp")
	local direction = ways[qp]
	if direction == nil and sovia.prefs.unknown and looks_like_message(packet) then
		direction = new_direction()
		ways[qp] = direction
	end
	return direction and take_packet(direction, packet) or FOREIGN
end

local function dissect_payload(tvb, pinfo, root)
	local found = once(read_packet, tvb, pinfo)
	if not found or found.foreign then
		return false
	end
	local imm = GET.imm()
	local len = math.min(tvb:len(), tvb:reported_len() - (get("pad") or 0))
	set_columns(pinfo, { show_packet(root, found, len > 0 and tvb(0, len):tvb() or nil, imm and imm.range) })
	return true
end

-- ---- iWARP ----

local DDP_LEN = 18 -- control, RDMAP control, STag, queue, message, offset

-- A frame of MPA with a SEND; tvb begins with its length.
local function split_fpdu(tvb, pinfo)
	if tvb:len() < 2 + DDP_LEN then
		return nil
	end
	local len, ddp, rdmap, queue, number, offset = Struct.unpack(">I2BBxxxxI4I4I4", tvb:raw(0, 2 + DDP_LEN))
	local opcode = rdmap % 16
	if len < DDP_LEN or has_flag(ddp, 0x80) or queue ~= 0 or opcode < 3 or opcode > 6 then
		return nil
	end
	local last, body = has_flag(ddp, 0x40), 2 + DDP_LEN
	len = len - DDP_LEN
	return {
		first = offset == 0, last = last, len = len,
		bytes = bytes_of(tvb, math.min(len, HEAD_LEN), body),
		number = number, step = last and 1 or 0, modulus = 0x100000000, frame = pinfo.number, at = pinfo.rel_ts,
		offset = body,
	}
end

-- Enhanced set-up (RFC 6581) puts four bytes before the private data.
local function private_data()
	local found = GET.mpa_private()
	local range = found and found.range
	if not range then
		return nil
	elseif has_flag(get("mpa_flags") or 0, 0x10) then
		return range:len() > 4 and range:range(4):tvb() or nil
	end
	return range:tvb()
end

local function read_mpa(pinfo, stream)
	local tvb, kind = private_data(), GET.mpa_req() and "REQ" or get("mpa_rejected") and "REJ" or "REP"
	local bytes = tvb and bytes_of(tvb, HELLO_LEN) or ""
	if kind == "REQ" and bytes:sub(1, 4) == "SOVA" then
		streams[stream] = new_vi()
		streams[stream].port = pinfo.src_port
		streams[stream].asker.packet, streams[stream].answerer.packet = 1, 1
	end
	local vi = streams[stream]
	if not vi then
		return FOREIGN
	end
	return { cm = take_cm(vi, { kind = kind, frame = pinfo.number, at = pinfo.rel_ts }, bytes) }
end

local function read_fpdus(pinfo, stream)
	local vi, list = streams[stream], {}
	if not vi then
		return FOREIGN
	end
	local direction = pinfo.src_port == vi.port and vi.asker or vi.answerer
	for i, fpdu in ipairs({ all_fpdus() }) do
		local packet = split_fpdu(fpdu.range:tvb(), pinfo)
		if packet then
			local found = take_packet(direction, packet)
			found.offset, found.len = packet.offset, math.min(packet.len, fpdu.range:len() - packet.offset)
			list[i] = found
		end
	end
	return { list = list }
end

local function read_iwarp(_, pinfo)
	local stream = get("stream")
	if GET.mpa_req() or GET.mpa_rep() then
		return read_mpa(pinfo, stream)
	elseif all_fpdus() then
		return read_fpdus(pinfo, stream)
	end
	return nil
end

local function show_fpdus(root, pinfo, list)
	local info = {}
	for i, fpdu in ipairs({ all_fpdus() }) do
		local found = list[i]
		if found then
			local tvb = found.len > 0 and fpdu.range:range(found.offset, found.len):tvb() or nil
			info[#info + 1] = show_packet(root, found, tvb)
		end
	end
	if #info > 0 then
		set_columns(pinfo, info)
	end
end

function iwarp.dissector(tvb, pinfo, root)
	-- With markers the frames are not what the field has; RFC 5044 recommends none.
	if not (all_fpdus() or GET.mpa_req() or GET.mpa_rep()) or GET.mpa_markers() then
		return
	end
	local found = once(read_iwarp, tvb, pinfo)
	if found and found.cm then
		show_cm(root, pinfo, found.cm, private_data())
	elseif found and found.list then
		show_fpdus(root, pinfo, found.list)
	end
end

-- Keeps other dissectors away from payload of ours, which may look like anything.
local function claim_iwarp()
	return streams[get("stream")] ~= nil
end

-- ---- registration ----

sovia:register_heuristic("infiniband.mad.cm.private", dissect_cm)
sovia:register_heuristic("infiniband.payload", dissect_payload)
sovia:register_heuristic("iwarp_ddp_rdmap", claim_iwarp)
register_postdissector(iwarp)
