// A person with a real Matrix client, for tests/live/js_person.py: one process is one device.
//
// Reads commands from standard input, each a line of JSON: {"id": 1, "do": "join", ...what the command takes}.
// Writes for each a line {"id": 1, "answer": ...} or {"id": 1, "error": "what went wrong"}; everything else that is
// to be told goes to standard error. Ends when its input ends. Keys are in memory: a device ends with its process.
import { createInterface } from "node:readline";

// Before anything is imported, since loggers take hold of the console: only answers go to standard output.
console.log = console.info = console.debug = console.trace = () => {};
console.warn = console.error;

const { ClientEvent, EventType, RelationType, SyncState, createClient } = await import("matrix-js-sdk");
const { AllDevicesIsolationMode, EventShieldColour, EventShieldReason, OnlySignedDevicesIsolationMode } =
    await import("matrix-js-sdk/lib/crypto-api/index.js");
const { decodeRecoveryKey } = await import("matrix-js-sdk/lib/crypto-api/recovery-key.js");

const ENCRYPTION = { type: EventType.RoomEncryption, state_key: "", content: { algorithm: "m.megolm.v1.aes-sha2" } };
const POLL_MS = 20;

let client;
let secretStorageKey; // bytes, once this device knows the recovery key
let heldKeys; // requests that wait for `releaseKeys`; undefined: nothing is held
const seen = new Map(); // room id -> event id -> event, as sync brought them, in its order

/** What sends room keys: told as done, but kept while keys are held. */
async function fetchFn(url, options) {
    if (heldKeys && new URL(url).pathname.includes("/sendToDevice/m.room.encrypted/")) {
        heldKeys.push(() => fetch(url, { ...options, signal: undefined }));
        return new Response("{}", { headers: { "Content-Type": "application/json" } });
    }
    return fetch(url, options);
}

async function until(condition) {
    while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, POLL_MS));
}

function note(event) {
    const [roomId, eventId] = [event.getRoomId(), event.getId()];
    if (!roomId || !eventId) return;
    if (!seen.has(roomId)) seen.set(roomId, new Map());
    if (!seen.get(roomId).has(eventId)) seen.get(roomId).set(eventId, event);
}

async function shieldOf(event) {
    const info = event.isEncrypted() ? await client.getCrypto().getEncryptionInfoForEvent(event) : null;
    if (!info) return null;
    const reason = info.shieldReason === null ? null : EventShieldReason[info.shieldReason];
    return { colour: EventShieldColour[info.shieldColour], reason };
}

/** An event as the client shows it now. */
async function describe(room, noted) {
    // The room's own object is the one that edits and redactions are applied to.
    const event = room.findEventById(noted.getId()) ?? noted;
    if (event.isEncrypted()) await client.decryptEventIfNeeded(event);
    const reactions = room.relations.getChildEventsForEvent(
        event.getId(),
        RelationType.Annotation,
        EventType.Reaction,
    );
    const isGone = (each) => (room.findEventById(each.getId()) ?? each).isRedacted();
    const pills = (reactions?.getSortedAnnotationsByKey() ?? [])
        .map(([key, events]) => [key, [...events].filter((each) => !isGone(each))])
        .filter(([, events]) => events.length); // what is withdrawn may stay, and its key
    return {
        event_id: event.getId(),
        sender: event.getSender(),
        type: event.getType(),
        encrypted: event.isEncrypted(),
        content: event.getOriginalContent(),
        shown: event.getContent(),
        relation: event.getWireContent()["m.relates_to"] ?? null,
        thread: event.threadRootId ?? null,
        edited_by: event.replacingEventId() ?? null,
        redacted: event.isRedacted(),
        reactions: Object.fromEntries(pills.map(([key, events]) => [key, events.map((each) => each.getSender())])),
        failure: event.decryptionFailureReason,
        shield: await shieldOf(event),
    };
}

const isEncrypted = (roomId) => client.getCrypto().isEncryptionEnabledInRoom(roomId);
const isJoined = (roomId) => client.getRoom(roomId)?.getMyMembership() === "join";

const commands = {
    async login({ homeserver, user, password, deviceId }) {
        const identifier = { type: "m.id.user", user };
        const answer = await createClient({ baseUrl: homeserver }).loginRequest({
            type: "m.login.password",
            identifier,
            password,
            device_id: deviceId,
        });
        client = createClient({
            baseUrl: homeserver,
            userId: answer.user_id,
            deviceId: answer.device_id,
            accessToken: answer.access_token,
            fetchFn,
            cryptoCallbacks: {
                getSecretStorageKey: async ({ keys }) => [Object.keys(keys)[0], secretStorageKey],
                cacheSecretStorageKey: (_id, _info, key) => (secretStorageKey = key),
            },
        });
        client.on(ClientEvent.Event, note);
        return { userId: answer.user_id, deviceId: answer.device_id };
    },

    /** isolation: "all" devices are trusted, or "only_signed" ones. */
    async start({ isolation }) {
        await client.initRustCrypto({ useIndexedDB: false });
        await commands.isolate({ isolation });
        await client.startClient({ initialSyncLimit: 1000, threadSupport: true });
        await until(() => client.getSyncState() === SyncState.Syncing);
    },

    async isolate({ isolation }) {
        const modes = { all: AllDevicesIsolationMode, only_signed: OnlySignedDevicesIsolationMode };
        client.getCrypto().setDeviceIsolationMode(new modes[isolation](false));
    },

    /** Signs this device with a new identity, or with that which the recovery key opens; gives the recovery key. */
    async crossSign({ recoveryKey }) {
        const crypto = client.getCrypto();
        if (recoveryKey) {
            secretStorageKey = decodeRecoveryKey(recoveryKey);
            await until(() => crypto.userHasCrossSigningKeys());
        }
        // Synapse asks for no password at the first upload.
        await crypto.bootstrapCrossSigning({ authUploadDeviceSigningKeys: (upload) => upload(null) });
        if (recoveryKey) return recoveryKey;
        const made = await crypto.createRecoveryKeyFromPassphrase();
        await crypto.bootstrapSecretStorage({ createSecretStorageKey: async () => made });
        return made.encodedPrivateKey;
    },

    /** null: the device is not known here. */
    async isSigned({ userId, deviceId }) {
        const status = await client.getCrypto().getDeviceVerificationStatus(userId, deviceId);
        return status?.signedByOwner;
    },

    async createRoom({ encrypted, invite, direct }) {
        const { room_id: roomId } = await client.createRoom({
            preset: "private_chat",
            invite,
            is_direct: direct,
            initial_state: encrypted ? [ENCRYPTION] : [],
        });
        await until(() => isJoined(roomId) && (!encrypted || isEncrypted(roomId)));
        return roomId;
    },

    async join({ roomId }) {
        await client.joinRoom(roomId);
        await until(() => isJoined(roomId));
    },

    async enableEncryption({ roomId }) {
        await client.sendStateEvent(roomId, ENCRYPTION.type, ENCRYPTION.content, "");
        await until(() => isEncrypted(roomId));
    },

    /** threadId: the client adds the relation to the thread, and a fallback reply where content has no reply. */
    async send({ roomId, threadId, type, content }) {
        return (await client.sendEvent(roomId, threadId, type, content)).event_id;
    },

    async redact({ roomId, eventId }) {
        return (await client.redactEvent(roomId, eventId)).event_id;
    },

    async timeline({ roomId }) {
        const room = client.getRoom(roomId);
        return room ? Promise.all([...(seen.get(roomId)?.values() ?? [])].map((event) => describe(room, event))) : [];
    },

    /** The next message in the room has a new key. */
    async changeKey({ roomId }) {
        await client.getCrypto().forceDiscardSession(roomId);
    },

    /** From now on, room keys are kept back, and everything else for single devices that is encrypted. */
    async holdKeys() {
        heldKeys ??= [];
    },

    /** Sends what was kept back, in its order; tells how many requests that were. */
    async releaseKeys() {
        const held = heldKeys ?? [];
        heldKeys = undefined;
        for (const send of held) {
            const response = await send();
            if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
        }
        return held.length;
    },
};

const lines = createInterface({ input: process.stdin });
lines.on("close", () => process.exit());
lines.on("line", async (line) => {
    const { id, do: name, ...request } = JSON.parse(line);
    let told;
    try {
        told = { id, answer: (await commands[name](request)) ?? null };
    } catch (error) {
        console.error(error);
        told = { id, error: String(error) };
    }
    process.stdout.write(`${JSON.stringify(told)}\n`);
});
