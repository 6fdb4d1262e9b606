#!/usr/bin/env bash
# publish_tags.sh TAG IMAGE - in the checkout that TAG was built from: a commit on top of it whose
# action.yml runs IMAGE, then TAG moved there, and the tag of its major version when no newer
# release of that has it. Whoever moved TAG meanwhile is not overwritten; twice is the same as once.
set -euo pipefail
tag=$1 image=$2
if ! [[ $tag =~ ^(v[0-9]+)\.[0-9]+\.[0-9]+ ]]; then
  echo "$tag is no tag of a release" >&2
  exit 1
fi
major=${BASH_REMATCH[1]}

seen() { # the object that a tag is at the remote, or nothing
  git ls-remote origin "refs/tags/$1" | cut -f 1
}

newest() { # release of the major version: its tag, candidates aside
  git ls-remote origin "refs/tags/$major.*" | grep -oE "v[0-9]+\.[0-9]+\.[0-9]+$" | sort -V | tail -n 1
}

built=$(git rev-parse HEAD)
python3 -m scripts.release pin "$image"
when=$(git show -s --format=%cI) # the same commit, whenever it is made
export GIT_AUTHOR_DATE=$when GIT_COMMITTER_DATE=$when
git commit --quiet --message "$tag runs the image that was built of it" -- action.yml
released=$(git rev-parse HEAD)

at=$(git ls-remote origin "refs/tags/$tag" "refs/tags/$tag^{}" | tail -n 1 | cut -f 1)
if [ "$at" != "$built" ] && [ "$at" != "$released" ]; then
  echo "$tag is at ${at:-no commit} and not at $built any more: nothing is published" >&2
  exit 1
fi
moved=("--force-with-lease=refs/tags/$tag:$(seen "$tag")" "$released:refs/tags/$tag")
if [ "$(newest)" = "$tag" ]; then
  moved+=("--force-with-lease=refs/tags/$major:$(seen "$major")" "$released:refs/tags/$major")
fi
git push --quiet --atomic origin "${moved[@]}"
echo "$released"
