# Sourced before the browser tests: finds Chromium, and installs it where it is missing, with the fonts of the pictures.
# CHROMIUM_PATH names the executable; unset, Playwright uses its own.

find_chromium() {
  command -v chromium || command -v chromium-browser || command -v google-chrome
}

CHROMIUM_PATH=${CHROMIUM_PATH:-$(find_chromium || true)}
if [ -z "$CHROMIUM_PATH" ] && [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
  apt-get update -q && apt-get install -qy --no-install-recommends chromium fonts-dejavu-core fonts-liberation || exit 1
  CHROMIUM_PATH=$(find_chromium)
fi
if [ -n "$CHROMIUM_PATH" ]; then
  export CHROMIUM_PATH PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1
else
  unset CHROMIUM_PATH
  (cd ui-tests && jlpm playwright install chromium) || exit 1
fi
