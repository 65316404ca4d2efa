// What htmx does not do: no double feed items after a reconnect, reading before consenting, following a live feed, clocks.
(() => {
  "use strict";
  const root = document.documentElement;
  root.classList.add("js");

  // --- one stream that continues at the last item seen, rests while nobody looks, and shows nothing twice ---
  // (Browsers allow six connections to a host: forgotten tabs must not use them up.)
  class Feed extends EventTarget {
    constructor(url) {
      super();
      this.address = url.split("?")[0];
      this.seen = 0;
      this.names = new Set();
      this.readyState = EventSource.CONNECTING;
      this.look = () => { if (document.hidden) this.rest(); else this.connect(); };
      document.addEventListener("visibilitychange", this.look);
      this.look();
    }
    connect() {
      if (this.source || this.readyState === EventSource.CLOSED) return;
      const source = new EventSource(this.address + "?after=" + this.seen);
      this.source = source;
      this.names.forEach((name) => this.bind(name));
      source.onopen = (e) => { this.readyState = EventSource.OPEN; if (this.onopen) this.onopen(e); };
      source.onerror = (e) => {
        if (this.onerror) this.onerror(e);
        if (source.readyState !== EventSource.CLOSED || this.source !== source) return;
        this.source = null; // refused rather than cut: the browser leaves the next try to us
        setTimeout(this.look, 2000);
      };
    }
    bind(name) {
      const source = this.source;
      source.addEventListener(name, (e) => {
        const id = Number(e.lastEventId || 0);
        if (this.source !== source || (name === "item" && id > 0 && id <= this.seen)) return;
        this.seen = Math.max(this.seen, id);
        this.dispatchEvent(new MessageEvent(name, { data: e.data, lastEventId: e.lastEventId }));
      });
    }
    addEventListener(name, listener, options) {
      super.addEventListener(name, listener, options);
      if (this.names.has(name)) return;
      this.names.add(name);
      if (this.source) this.bind(name);
    }
    rest() {
      if (this.source) this.source.close();
      this.source = null;
    }
    close() {
      this.readyState = EventSource.CLOSED;
      this.rest();
      document.removeEventListener("visibilitychange", this.look);
    }
  }
  htmx.createEventSource = (url) => new Feed(url);

  let following = false;
  const nearEnd = () => window.innerHeight + window.scrollY >= document.body.scrollHeight - 120;
  document.addEventListener("htmx:sseBeforeMessage", () => {
    following = nearEnd() && !document.querySelector("#panel article.ask.open");
  });
  document.addEventListener("htmx:sseMessage", () => {
    if (following) window.scrollTo({ top: document.body.scrollHeight });
  });

  // --- a lost connection is said ---
  const lost = { feed: false, poll: false };
  const say = (which, on) => {
    lost[which] = on;
    const bar = document.getElementById("offline");
    if (bar) bar.hidden = !lost.feed && !lost.poll;
  };
  document.addEventListener("htmx:sseError", () => say("feed", true));
  document.addEventListener("htmx:sseOpen", () => say("feed", false));
  document.addEventListener("htmx:sseClose", () => say("feed", false));
  document.addEventListener("htmx:sendError", () => say("poll", true));
  document.addEventListener("htmx:afterRequest", (e) => { if (e.detail.successful) say("poll", false); });

  // --- a long text is read to its end before a button that consents comes alive ---
  const atEnd = (el) => el.scrollTop + el.clientHeight >= el.scrollHeight - 4;
  const gate = (card) => {
    const texts = [...card.querySelectorAll("[data-read]")];
    const done = texts.every((t) => t.dataset.seen === "1");
    card.querySelectorAll("[data-consent]").forEach((b) => { b.disabled = !done; });
    const hint = card.querySelector(".readhint");
    if (hint) hint.hidden = done;
    card.querySelectorAll("form").forEach((f) => {
      const there = f.querySelector("input[type=hidden][name=read]");
      if (done && !there) {
        const input = document.createElement("input");
        input.type = "hidden"; input.name = "read"; input.value = "1";
        f.append(input);
      }
    });
  };
  const watchReading = () => {
    document.querySelectorAll("article.ask").forEach((card) => {
      const texts = card.querySelectorAll("[data-read]");
      if (!texts.length || card.dataset.gated) return;
      card.dataset.gated = "1";
      texts.forEach((t) => {
        const look = () => { if (atEnd(t)) { t.dataset.seen = "1"; gate(card); } };
        t.addEventListener("scroll", look, { passive: true });
        look();
      });
      gate(card);
    });
  };

  // --- a question that is out of sight is pointed at ---
  let asked = "";
  let visibleAsk = null;
  const watchAsks = () => {
    const jump = document.getElementById("jump");
    if (!jump) return;
    const open = document.querySelector("#panel article.ask.open");
    if (visibleAsk) visibleAsk.disconnect();
    jump.hidden = true;
    if (!open) { asked = ""; return; }
    jump.href = "#" + open.id;
    const at = open.getBoundingClientRect();
    if (asked !== open.id && following && (at.top < 0 || at.top > window.innerHeight)) open.scrollIntoView({ block: "start" });
    asked = open.id;
    visibleAsk = new IntersectionObserver((seen) => { jump.hidden = seen.some((s) => s.isIntersecting); });
    visibleAsk.observe(open);
  };

  // --- clocks ---
  const words = (s) => s < 3600 ? Math.floor(s / 60) + " min" : s < 172800 ? Math.floor(s / 3600) + " h" : Math.floor(s / 86400) + " days";
  const tick = () => {
    document.querySelectorAll("time[datetime]").forEach((t) => {
      const at = new Date(t.getAttribute("datetime"));
      const s = (Date.now() - at) / 1000;
      t.title = at.toLocaleString();
      if (t.hasAttribute("data-until")) t.textContent = s >= 0 ? "expired" : s > -60 ? "in less than a minute" : "in " + words(-s);
      else t.textContent = s < 10 ? "just now" : s < 60 ? Math.floor(s) + " s ago" : words(s) + " ago";
    });
  };

  // --- the tab's title counts open asks ---
  const title = document.title;
  const countAsks = () => {
    const count = document.querySelector("header .count");
    document.title = (count ? "(" + count.lastChild.textContent.trim() + ") " : "") + title;
  };

  // --- a fresh panel keeps what a person was reading and writing at the same question ---
  let drafts = [];
  const panelOf = (e) => e.detail.target && e.detail.target.id === "panel" ? e.detail.target : null;
  document.addEventListener("htmx:beforeSwap", (e) => {
    const panel = panelOf(e);
    if (!panel) return;
    const at = document.activeElement;
    drafts = [...panel.querySelectorAll("article.ask.open")].map((card) => ({
      id: card.id,
      texts: [...card.querySelectorAll("textarea")].map((t) => [t.id, t.value]),
      open: [...card.querySelectorAll("details.write")].map((d) => d.open),
      read: [...card.querySelectorAll("[data-read]")].map((t) => [t.dataset.seen, t.scrollTop]),
      at: card.contains(at) && at.id ? [at.id, at.selectionStart, at.selectionEnd] : null,
    }));
  });
  document.addEventListener("htmx:afterSwap", (e) => {
    if (!panelOf(e)) return;
    drafts.forEach((d) => {
      const card = document.getElementById(d.id);
      if (!card || !card.classList.contains("open")) return;
      card.querySelectorAll("[data-read]").forEach((t, i) => {
        if (!d.read[i]) return;
        if (d.read[i][0]) t.dataset.seen = d.read[i][0];
        t.scrollTop = d.read[i][1];
      });
      card.querySelectorAll("details.write").forEach((x, i) => { x.open = x.open || !!d.open[i]; });
      d.texts.forEach(([id, text]) => { const t = document.getElementById(id); if (t && text) t.value = text; });
      const at = d.at && document.getElementById(d.at[0]);
      if (!at) return;
      at.focus({ preventScroll: true });
      if (at.setSelectionRange && at.matches("textarea")) at.setSelectionRange(d.at[1], d.at[2]);
    });
    drafts = [];
  });

  const refresh = () => { watchReading(); watchAsks(); countAsks(); tick(); };
  document.addEventListener("htmx:afterSettle", refresh);
  setInterval(tick, 10000);
  refresh();

  // --- Ctrl+Enter sends the text one is writing ---
  document.addEventListener("keydown", (e) => {
    if (e.key !== "Enter" || !(e.ctrlKey || e.metaKey) || !e.target.matches("textarea[data-submit]")) return;
    const button = e.target.form.querySelector("button[type=submit]");
    if (button) { e.preventDefault(); e.target.form.requestSubmit(button); }
  });

  // --- a login link needs no second press ---
  const go = document.querySelector("form[data-go]");
  if (go) go.requestSubmit();
})();
