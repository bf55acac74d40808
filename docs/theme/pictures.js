// Pictures are there in light and in dark. Browsers choose by the system; here, the page's button does too.
const follow = () => {
  const dark = document.body.dataset.mdColorScheme === 'slate';
  for (const source of document.querySelectorAll('picture source')) {
    source.media = dark ? 'all' : 'not all';
  }
};
document$.subscribe(follow);
new MutationObserver(follow).observe(document.body, {
  attributeFilter: ['data-md-color-scheme']
});
