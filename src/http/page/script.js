"use strict";
// Shows the page again every ten seconds without moving focus or scroll, and says so when it cannot.
// `/` goes to the search.
const search = () => document.querySelector("input[type=search]");

async function again() {
  const focused = document.activeElement;
  if (document.hidden || focused?.matches("input, select")) return;
  try {
    const answer = await fetch(location.href, { cache: "no-store" });
    if (!answer.ok) throw new Error(answer.statusText);
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    const href = focused?.getAttribute("href");
    const open = [...document.querySelectorAll("details[open] > summary")].map((s) => s.textContent);
    document.querySelector("main").replaceWith(next.querySelector("main"));
    document.title = next.title;
    for (const s of document.querySelectorAll("details > summary"))
      if (open.includes(s.textContent)) s.parentElement.open = true;
    if (href) [...document.links].find((a) => a.getAttribute("href") === href)?.focus({ preventScroll: true });
    document.querySelector(".unfresh")?.remove();
  } catch {
    if (document.querySelector(".unfresh")) return;
    const note = document.createElement("p");
    note.className = "unfresh";
    note.setAttribute("role", "status");
    note.textContent = "No answer since " + new Date().toLocaleTimeString() + ": what is shown is old.";
    document.querySelector("header").append(note);
  }
}

setInterval(again, 10000);
document.addEventListener("change", (e) => e.target.matches("select") && e.target.form?.submit());
document.addEventListener("keydown", (e) => {
  if (e.key === "/" && search() && !e.target.matches("input, select")) {
    e.preventDefault();
    search().focus();
  }
});
