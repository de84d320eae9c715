//! Passes events and requests to the views, and performs what they request.

use super::state::App;
use crate::doctor::finding::NavTarget;
use crate::tui::view::{Context, Effect, Outbox, Overlay, PaneId, Request, Target, View, ViewId};
use crate::tui::widgets::Scroll;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

impl From<NavTarget> for Target {
    fn from(target: NavTarget) -> Self {
        match target {
            NavTarget::Knob(knob) => Self::Knobs(vec![knob]),
            NavTarget::Bench(name, directory) => Self::Profile { name, directory },
            NavTarget::Device(id) => Self::Device(id),
            NavTarget::Task(key) => Self::Task(key),
            NavTarget::KernelLog(seq) => Self::KernelLogRecord(seq),
            NavTarget::Memory => Self::Tab(ViewId::Memory),
            NavTarget::Processes => Self::Tab(ViewId::Processes),
            NavTarget::Devices => Self::Tab(ViewId::Devices),
            NavTarget::Syncs => Self::Tab(ViewId::Syncs),
        }
    }
}

impl App {
    /// Reads the view that owns a pane.
    pub fn with_view<R>(&self, pane: PaneId, read: impl FnOnce(&dyn View, &Context) -> R) -> Option<R> {
        let (layout, focused) = self.arrange();
        let cx = Context::new(&self.shared, &self.screen, &layout, focused);
        Some(read(self.views.of_pane(pane)?, &cx))
    }

    /// Lets the view that owns a pane change itself, and does what it asks for.
    pub(super) fn update_view<R>(
        &mut self,
        pane: PaneId,
        effects: &mut Vec<Effect>,
        mut change: impl FnMut(&mut dyn View, &Context, &mut Outbox) -> R,
    ) -> Option<R> {
        self.visit_views(effects, |view, cx, out| {
            view.panes().iter().any(|p| p.0 == pane).then(|| change(view, cx, out))
        })
    }

    /// Calls one view after the other until one returns a result, and performs what they request.
    pub(super) fn visit_views<R>(
        &mut self,
        effects: &mut Vec<Effect>,
        mut visit: impl FnMut(&mut dyn View, &Context, &mut Outbox) -> Option<R>,
    ) -> Option<R> {
        let (layout, focused) = self.arrange();
        let cx = Context::new(&self.shared, &self.screen, &layout, focused);
        let mut out = Outbox::default();
        let result = self.views.all_mut().into_iter().find_map(|view| {
            out.owner = Some(view.panes()[0].0);
            visit(view, &cx, &mut out)
        });
        self.views.publish(&mut self.shared);
        self.handle_outbox(out, effects);
        result
    }

    /// Lets every view follow a change of what it shows.
    pub fn refresh_views(&mut self, effects: &mut Vec<Effect>) {
        self.visit_views(effects, |view, cx, out| -> Option<()> {
            view.refresh(cx, out);
            None
        });
    }

    fn handle_outbox(&mut self, out: Outbox, effects: &mut Vec<Effect>) {
        effects.extend(out.effects);
        for request in out.requests {
            match request {
                Request::Navigate(target) => self.navigate(target, effects),
                Request::SetDirectory(directory) => {
                    self.shared.target.directory = directory;
                    self.inspect_target(effects);
                }
                Request::InspectTarget => self.inspect_target(effects),
                Request::Info(text) => self.screen.info(text),
                Request::Error(text) => self.screen.error(text),
                Request::Open(owner, overlay) => {
                    self.screen.message.take_if(|_| matches!(overlay, Overlay::Dialog(_)));
                    self.open_overlay(overlay, owner);
                }
                Request::OpenPage(pane) => {
                    self.screen.detail = Some(pane);
                    self.screen.detail_scroll = Scroll::default();
                }
                Request::FocusPane(index) if !self.screen.zoomed => self.screen.focus = index,
                Request::FocusPane(_) => {}
                Request::ShowPane(pane) => {
                    self.screen.zoomed = false;
                    self.screen.focus = self.arrange().0.panes.iter().position(|p| p.0 == pane).unwrap_or(0);
                }
            }
        }
    }

    /// Opens a prompt or a dialog; `owner` is a pane of the view that gets the answer.
    pub(super) fn open_overlay(&mut self, overlay: Overlay, owner: Option<PaneId>) {
        self.screen.overlay = Some(overlay);
        self.screen.overlay_owner = owner;
    }

    /// Goes to a target.
    pub fn navigate(&mut self, target: Target, effects: &mut Vec<Effect>) {
        let is_measuring = self.shared.running.as_ref().is_some_and(|running| !running.is_experiment);
        match &target {
            Target::Experiments(_) => self.screen.zoomed = false,
            // A benchmark under way keeps its directory.
            Target::Profile { directory: Some(directory), .. } if !is_measuring => {
                self.shared.target.directory = OsString::from_vec(directory.as_bytes().to_vec()).into();
            }
            _ => {}
        }
        self.visit_views(effects, |view, cx, out| view.on_target(&target, cx, out).then_some(()));
        if let Target::Tab(tab) = target {
            self.open_tab(tab, effects);
        }
    }

    fn open_tab(&mut self, tab: ViewId, effects: &mut Vec<Effect>) {
        self.screen.view = tab;
        self.screen.passed_at_seq = None;
        self.screen.focus = 0;
        self.screen.zoomed = false;
        self.screen.detail = None;
        self.visit_views(effects, |view, cx, out| -> Option<()> {
            view.on_tab(cx, out);
            None
        });
    }

    fn inspect_target(&mut self, effects: &mut Vec<Effect>) {
        effects.extend(self.shared.target.request_inspection().map(Effect::RunJob));
        self.select_target_device();
    }

    /// Selects the device that is measured in the list of devices, while the Bench tab shows it.
    pub(super) fn select_target_device(&mut self) {
        if let Some(device) = self.shared.target.device().filter(|_| self.screen.view == ViewId::Bench) {
            self.views.devices.select(device, &self.shared);
        }
    }
}
