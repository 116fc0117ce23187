// A menu of the versions listed in versions.json, one folder above the site. Without that file there is no menu.
(() => {
    const root = new URL(document.documentElement.dataset.content_root || "./", location.href);
    const here = decodeURIComponent(root.pathname.split("/").at(-2) || "");
    const page = location.pathname.slice(root.pathname.length);
    const show = (versions) => {
        const box = document.querySelector(".versions");
        if (!box || !versions.includes(here)) return;
        const menu = box.querySelector("select");
        for (const name of versions) menu.add(new Option(name, name, false, name === here));
        menu.addEventListener("change", async () => {
            const chosen = new URL(`../${encodeURIComponent(menu.value)}/`, root);
            const same = new URL(page, chosen);
            const found = await fetch(same, { method: "HEAD" }).then((answer) => answer.ok, () => false);
            location.href = found ? same : chosen; // an older version may not have this page
        });
        box.hidden = false;
    };
    if (location.protocol !== "file:") {
        fetch(new URL("../versions.json", root)).then((answer) => (answer.ok ? answer.json() : [])).then(show, () => {});
    }
})();
