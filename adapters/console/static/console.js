// What htmx does not do: no double feed items after a reconnect, reading before consenting, following a live feed, clocks.
(() => {
  "use strict";
  const root = document.documentElement;
  root.classList.add("js");

  // --- the feed continues at the last item seen, also when the stream has to be opened anew ---
  let seen = 0;
  let following = false;
  const nearEnd = () => window.innerHeight + window.scrollY >= document.body.scrollHeight - 120;

  document.addEventListener("htmx:sseBeforeMessage", (e) => {
    const id = Number(e.detail.lastEventId || 0);
    if (e.detail.type === "item" && id > 0) {
      if (id <= seen) { e.preventDefault(); return; }
      seen = id;
      const source = document.querySelector("[data-feed]");
      if (source) source.setAttribute("sse-connect", source.dataset.feed + "?after=" + id);
    }
    following = nearEnd() && !document.querySelector("#panel article.ask.open");
  });
  document.addEventListener("htmx:sseMessage", () => {
    if (following) window.scrollTo({ top: document.body.scrollHeight });
  });

  const offline = (on) => { const bar = document.getElementById("offline"); if (bar) bar.hidden = !on; };
  document.addEventListener("htmx:sseError", () => offline(true));
  document.addEventListener("htmx:sseOpen", () => offline(false));
  document.addEventListener("htmx:sendError", () => offline(true));
  document.addEventListener("htmx:afterRequest", (e) => { if (e.detail.successful && !document.querySelector("[data-feed]")) offline(false); });

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

  const refresh = () => { watchReading(); watchAsks(); tick(); };
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
