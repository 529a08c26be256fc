/* SPDX-License-Identifier: MIT
 * Handles settings: those of all conversations (in browserStorage, so that all tabs have them) and those of the
 * conversation that is shown. */

const GLOBAL_SETTINGS = "whit.settings", KEY = "whit.key";

const globalSettings = () => { const s = readStored(browserStorage, GLOBAL_SETTINGS); return {system: textOr(s.system), model: textOr(s.model)} };

function setGlobal(name, value) {
  browserStorage.setItem(GLOBAL_SETTINGS, JSON.stringify({...globalSettings(), [name]: value}));
}

/* Returns the API key, which this tab keeps or, if the person asked for that, the browser. */
const apiKey = () => tabStorage.getItem(KEY) || browserStorage.getItem(KEY) || "";

function setKey(key, remembered) {
  tabStorage.removeItem(KEY);
  browserStorage.removeItem(KEY);
  if (key) (remembered ? browserStorage : tabStorage).setItem(KEY, key);
}

/* Returns the text for the value of a sampler that a request leaves out; "default" if the server has not told it. */
function defaultOf(name) {
  const of = properties[currentModel().id] || Object.values(properties)[0]; // alike for all models
  const known = of?.default_generation_settings?.params || {};
  if (name === "seed") return "random";
  if (name === "max_tokens") return "no limit";
  return known[name] === undefined ? "default" : String(known[name]);
}

function samplerField(s) {
  const e = make("label", s.label), input = make("input", null, {id: "s-" + s.name, type: "number", min: s.min, max: s.max, step: s.step});
  input.onchange = () => {
    if (input.value === "" || !input.checkValidity()) delete current.sampling[s.name];
    else current.sampling[s.name] = Number(input.value);
    saveSettings();
  };
  e.append(input);
  return e;
}

function saveSettings() {
  saveRecord(current);
  showList();
}

function showAdapters() {
  const adapters = models.filter(m => m.is_adapter);
  $("adapters").hidden = !adapters.length;
  $("adapters").replaceChildren(make("legend", "Adapters, by strength"), ...adapters.map(a => {
    const e = make("label", a.id), input = make("input", null, {type: "number", min: -16, max: 16, step: 0.05, placeholder: "as the server has it"});
    input.value = current.adapters[a.id] ?? "";
    input.onchange = () => {
      if (input.value === "" || !input.checkValidity()) delete current.adapters[a.id];
      else current.adapters[a.id] = Number(input.value);
      saveSettings();
    };
    e.append(input);
    return e;
  }));
}

async function showSettings() {
  await loadModels(); // models may have been opened since
  const known = properties[currentModel().id] || {};
  $("global-system").value = globalSettings().system;
  $("system").value = current.system;
  $("system").placeholder = globalSettings().system ? "as for all conversations" : "";
  $("key").value = apiKey();
  $("remember").checked = !!browserStorage.getItem(KEY);
  $("thinking").value = current.thinking;
  $("thinking").disabled = known.switches_thinking === false;
  $("thinking").title = known.switches_thinking === false ? "This model's template has no such switch." : "";
  $("format").value = current.format;
  $("schema").value = current.schema;
  $("schema-row").hidden = current.format !== "schema";
  for (const s of SAMPLERS) {
    $("s-" + s.name).value = current.sampling[s.name] ?? "";
    $("s-" + s.name).placeholder = defaultOf(s.name);
  }
  $("more").open = SAMPLERS.slice(USUAL_SAMPLERS).some(s => current.sampling[s.name] !== undefined);
  showAdapters();
  $("dialog").showModal();
}

/* Keeps the schema of the field; if it is not JSON, it is not kept, and the field says so. */
function changeSchema() {
  try {
    if ($("schema").value.trim()) JSON.parse($("schema").value);
    $("schema").setCustomValidity("");
    current.schema = $("schema").value;
  } catch (e) { $("schema").setCustomValidity("The schema is not JSON: " + e.message) }
  $("schema").reportValidity();
  current.format = current.schema.trim() && $("format").value === "schema" ? "schema" : current.format === "schema" ? "" : current.format;
  saveSettings();
  showMessages();
}

function openSettings() {
  $("sampling").replaceChildren(...SAMPLERS.slice(0, USUAL_SAMPLERS).map(samplerField));
  $("sampling-more").replaceChildren(...SAMPLERS.slice(USUAL_SAMPLERS).map(samplerField));
  $("system").onchange = () => { current.system = $("system").value; saveSettings(); showMessages() };
  $("global-system").onchange = () => setGlobal("system", $("global-system").value);
  $("key").onchange = $("remember").onchange = () => { setKey($("key").value, $("remember").checked); loadModels() };
  $("thinking").onchange = () => { current.thinking = $("thinking").value; saveSettings() };
  $("format").onchange = () => {
    $("schema-row").hidden = $("format").value !== "schema";
    if ($("format").value === "schema") { changeSchema(); $("schema").focus() }
    else { current.format = $("format").value; saveSettings(); showMessages() }
  };
  $("schema").onchange = changeSchema;
  $("settings").onclick = showSettings;
  $("close").onclick = () => $("dialog").close();
}
